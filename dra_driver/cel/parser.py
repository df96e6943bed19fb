"""From words to a tree.

A parser of our own on the grammar of cel-python, extended by what Kubernetes accepts: lark needs about 0.3 ms for a
short expression and gives up with the words that it could have taken instead of what is wrong; and the limits on
nesting are part of the verdict. Recursive, one function a level of the grammar:

    expr      = or [ "?" or ":" expr ]
    or        = and { "||" and }
    and       = relation { "&&" relation }
    relation  = sum { ( "<" "<=" ">=" ">" "==" "!=" "in" ) sum }
    sum       = product { ( "+" "-" ) product }
    product   = unary { ( "*" "/" "%" ) unary }
    unary     = member | "!" { "!" } member | "-" { "-" } member
    member    = primary { "." [ "?" ] field | "." name "(" [ exprs ] ")" | "[" [ "?" ] expr "]" }
    primary   = [ "." ] name [ "(" [ exprs ] ")" ] | "(" expr ")" | literal
              | "[" [ [ "?" ] expr { "," [ "?" ] expr } ] [ "," ] "]"
              | "{" [ [ "?" ] expr ":" expr { "," [ "?" ] expr ":" expr } ] [ "," ] "}"
              | [ "." ] name { "." name } "{" [ field ":" expr { "," field ":" expr } ] [ "," ] "}"
"""

from collections.abc import Callable
from typing import Final

from dra_driver.cel import literal
from dra_driver.cel.depth import with_room
from dra_driver.cel.error import CompileError, issue_at
from dra_driver.cel.habit import advise_pair, advise_word, explain_character
from dra_driver.cel.macro import MacroError, Nodes, expand
from dra_driver.cel.token import RESERVED, LexicalError, Token, read_tokens
from dra_driver.cel.tree import Call, Entry, Field, Ident, ListNode, Literal, MapNode, MessageNode, Node, Select

MAX_CODE_POINTS: Final = 100_000
MAX_DEPTH: Final = 250

_RELATIONS: Final = frozenset(("<", "<=", ">=", ">", "==", "!=", "in"))
_SUMS: Final = frozenset(("+", "-"))
_PRODUCTS: Final = frozenset(("*", "/", "%"))
_OPERATORS: Final = {
    "in": "@in",
    **{text: f"_{text}_" for text in ("<", "<=", ">=", ">", "==", "!=", "+", "-", "*", "/", "%", "&&", "||")},
}


def parse(expression: str) -> Node:
    """Parse an expression and expand its macros. Raises CompileError."""
    try:
        expression.encode()
    except UnicodeEncodeError as error:
        raise _refuse(expression, error.start, "text that is not Unicode") from None
    if len(expression) > MAX_CODE_POINTS:
        raise _refuse(expression[:100], 0, f"{len(expression)} characters", f"want at most {MAX_CODE_POINTS}")
    try:
        tokens = read_tokens(expression)
    except LexicalError as error:
        raise _refuse(expression, error.args[0], *explain_character(expression, error.args[0])) from None
    return with_room(lambda: _Parser(expression, tokens).parse())


def _refuse(expression: str, offset: int, found: str, wanted: str = "") -> CompileError:
    return CompileError(expression, (issue_at(expression, offset, found, wanted),))


class _Parser:
    __slots__ = ("expression", "nested", "nodes", "opened", "position", "token", "tokens")

    def __init__(self, expression: str, tokens: list[Token]) -> None:
        self.expression = expression
        self.tokens = tokens
        self.position = 0
        self.token = tokens[0]
        self.nodes = Nodes()
        self.nested = 0
        self.opened = {"relation": 0, "sum": 0}

    def parse(self) -> Node:
        node, _ = self.expr()
        if self.token.kind != "end":
            raise self.unexpected("an operator or the end")
        return node

    def error(self, offset: int, found: str, wanted: str = "") -> CompileError:
        return _refuse(self.expression, offset, found, wanted)

    def unexpected(self, wanted: str) -> CompileError:
        token = self.token
        before = self.tokens[self.position - 1].text if self.position else ""
        advice = advise_word(token.text, before) or advise_word(before, "") or advise_pair(before, token.text)
        if token.text in RESERVED:
            return self.error(token.offset, f"{token.text!r} is a reserved word", advice or f"want {wanted}")
        found = f"unexpected {token.text!r}" if token.text else "unexpected end"
        return self.error(token.offset, found, advice or f"want {wanted}")

    def advance(self) -> Token:
        token = self.token
        self.position += 1
        self.token = self.tokens[self.position]
        return token

    def take(self, kind: str, wanted: str = "") -> Token:
        if self.token.kind != kind:
            raise self.unexpected(wanted or f"{kind!r}")
        return self.advance()

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.advance()
        return True

    def peek(self) -> Token:
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def limit(self, height: int) -> int:
        """Check the height of a chain of operators; parentheses do not add to it."""
        if height > MAX_DEPTH:
            raise self.error(self.token.offset, f"more than {MAX_DEPTH} levels of operators")
        return height

    def expr(self) -> tuple[Node, int]:
        """Parse an expression; like all of these, give the height of its operators besides."""
        self.nested += 1
        if self.nested > MAX_DEPTH:
            raise self.error(self.token.offset, f"more than {MAX_DEPTH} nested expressions")
        node, height = self.chain("||", self.conjunction)
        if self.token.kind == "?":
            operator = self.advance()
            chosen, height1 = self.chain("||", self.conjunction)
            self.take(":")
            other, height2 = self.expr()
            node = self.call(operator, "_?_:_", [node, chosen, other])
            height = self.limit(max(height, height1, height2) + 1)
        self.nested -= 1
        return node, height

    def conjunction(self) -> tuple[Node, int]:
        return self.chain("&&", self.relation)

    def chain(self, operator: str, operand: Callable[[], tuple[Node, int]]) -> tuple[Node, int]:
        """Parse operands of `&&` or `||`; they become a balanced tree."""
        node, height = operand()
        if self.token.kind != operator:
            return node, height
        terms = [node]
        operators = []
        while self.token.kind == operator:
            operators.append(self.advance())
            node, other = operand()
            terms.append(node)
            height = max(height, other)
        return self.balance(terms, operators, 0, len(operators) - 1), height

    def balance(self, terms: list[Node], operators: list[Token], low: int, high: int) -> Node:
        middle = (low + high + 1) // 2
        left = terms[middle] if middle == low else self.balance(terms, operators, low, middle - 1)
        right = terms[middle + 1] if middle == high else self.balance(terms, operators, middle + 1, high)
        token = operators[middle]
        return self.call(token, _OPERATORS[token.text], [left, right])

    def relation(self) -> tuple[Node, int]:
        return self.operators("relation", self.sum, _RELATIONS)

    def sum(self) -> tuple[Node, int]:
        return self.operators("sum", self.product, _SUMS)

    def product(self) -> tuple[Node, int]:
        return self.operators("product", self.unary, _PRODUCTS)

    def operators(self, rule: str, operand: Callable[[], tuple[Node, int]], kinds: frozenset[str]) -> tuple[Node, int]:
        """Parse operands with operators between them, which bind to the left.

        The reference counts how many of these are open: one for the whole, but for a product within a sum, and one
        for the right side.
        """
        counted = "sum" if rule == "product" else rule
        opened = rule != "product"
        if opened:
            self.open(counted)
        node, height = operand()
        while self.token.kind in kinds:
            operator = self.advance()
            self.open(counted)
            right, other = operand()
            self.opened[counted] -= 1
            node = self.call(operator, _OPERATORS[operator.text], [node, right])
            height = self.limit(max(height, other) + 1)
        if opened:
            self.opened[counted] -= 1
        return node, height

    def open(self, rule: str) -> None:
        self.opened[rule] += 1
        if self.opened[rule] > MAX_DEPTH:
            raise self.error(self.token.offset, f"more than {MAX_DEPTH} nested operators")

    def unary(self) -> tuple[Node, int]:
        kind = self.token.kind
        if kind not in ("!", "-") or (kind == "-" and self.peek().kind in ("int", "double")):
            return self.member()
        first = self.advance()
        count = 1
        while self.token.kind == kind:
            self.advance()
            count += 1
        node, height = self.member()
        if count % 2 == 0:
            return node, height
        return self.call(first, "!_" if kind == "!" else "-_", [node]), height

    def member(self) -> tuple[Node, int]:
        node, height = self.primary()
        while True:
            if self.token.kind == "[":
                node, height = self.index(node, height)
            elif self.token.kind == ".":
                node, height = self.select(node, height)
            else:
                return node, height

    def index(self, operand: Node, height: int) -> tuple[Node, int]:
        operator = self.advance()
        function = "_[?_]" if self.accept("?") else "_[_]"
        place, other = self.expr()
        self.take("]")
        return self.call(operator, function, [operand, place]), self.limit(max(height, other) + 1)

    def select(self, operand: Node, height: int) -> tuple[Node, int]:
        operator = self.advance()
        optional = self.accept("?")
        name = self.token
        if name.kind not in ("name", "quoted"):
            raise self.unexpected("the name of a field")
        self.advance()
        if name.kind == "name" and not optional and self.token.kind == "(":
            opening = self.token
            arguments, other = self.arguments()
            node = self.call(opening, name.text, arguments, operand)
            return node, self.limit(max(height, other) + 1)
        field = name.text.strip("`")
        height = self.limit(height + 1)
        if optional:
            key = Literal(self.nodes.number(), name.offset, field)
            return Call(self.nodes.number(), operator.offset, "_?._", None, [operand, key]), height
        return Select(self.nodes.number(), operator.offset, operand, field), height

    def arguments(self) -> tuple[list[Node], int]:
        self.take("(")
        arguments: list[Node] = []
        height = 0
        if not self.accept(")"):
            while True:
                node, other = self.expr()
                arguments.append(node)
                height = max(height, other)
                if not self.accept(","):
                    break
            self.take(")", "',' or ')'")
        return arguments, height

    def primary(self) -> tuple[Node, int]:
        token = self.token
        match token.kind:
            case "(":
                self.advance()
                result = self.expr()
                self.take(")")
                return result
            case "[":
                return self.list_literal()
            case "{":
                return self.map_literal()
            case "name" | ".":
                return self.name()
            case _:
                return self.literal(), 0

    def name(self) -> tuple[Node, int]:
        dot = "." if self.accept(".") else ""
        token = self.take("name", "a name")
        if (message := self.message(dot, token)) is not None:
            return message
        if token.text in RESERVED:
            raise self.error(
                token.offset, f"{token.text!r} is a reserved word", advise_word(token.text, "") or "want another name"
            )
        if self.token.kind == "(":
            opening = self.token
            arguments, height = self.arguments()
            return self.call(opening, dot + token.text, arguments), height
        return Ident(self.nodes.number(), token.offset, dot + token.text), 0

    def message(self, dot: str, first: Token) -> tuple[Node, int] | None:
        """Parse `Name{…}` if that is what comes."""
        ahead = self.position
        names = [first.text]
        while self.tokens[ahead].kind == "." and self.tokens[ahead + 1].kind == "name":
            names.append(self.tokens[ahead + 1].text)
            ahead += 2
        if self.tokens[ahead].kind != "{":
            return None
        self.position = ahead
        self.token = self.tokens[ahead]
        opening = self.advance()
        fields: list[Field] = []
        height = 0
        while self.token.kind not in ("}", ","):
            optional = self.accept("?")
            if self.token.kind not in ("name", "quoted"):
                raise self.unexpected("the name of a field")
            name = self.advance()
            self.take(":")
            node, other = self.expr()
            fields.append(Field(name.offset, name.text.strip("`"), node, optional))
            height = max(height, other)
            if self.token.kind != "," or self.peek().kind == "}":
                break
            self.advance()
        self.accept(",")
        self.take("}", "',' or '}'")
        return MessageNode(self.nodes.number(), opening.offset, dot + ".".join(names), fields), height

    def list_literal(self) -> tuple[Node, int]:
        opening = self.advance()
        elements: list[Node] = []
        optional = set()
        height = 0
        while self.token.kind not in ("]", ","):
            if self.accept("?"):
                optional.add(len(elements))
            node, other = self.expr()
            elements.append(node)
            height = max(height, other)
            if self.token.kind != "," or self.peek().kind == "]":
                break
            self.advance()
        self.accept(",")
        self.take("]", "',' or ']'")
        return ListNode(self.nodes.number(), opening.offset, elements, frozenset(optional)), height

    def map_literal(self) -> tuple[Node, int]:
        opening = self.advance()
        entries = []
        height = 0
        while self.token.kind not in ("}", ","):
            optional = self.accept("?")
            key, height1 = self.expr()
            self.take(":")
            value, height2 = self.expr()
            entries.append(Entry(self.nodes.number(), key, value, optional))
            height = max(height, height1, height2)
            if self.token.kind != "," or self.peek().kind == "}":
                break
            self.advance()
        self.accept(",")
        self.take("}", "',' or '}'")
        return MapNode(self.nodes.number(), opening.offset, entries), height

    def literal(self) -> Node:
        offset = self.token.offset
        negative = self.accept("-")
        token = self.token
        if token.kind not in literal.KINDS:
            raise self.unexpected("an expression")
        self.advance()
        try:
            value = literal.parse_literal(token.kind, token.text, negative=negative)
        except literal.LiteralError as error:
            raise self.error(offset, str(error)) from None
        return Literal(self.nodes.number(), offset, value)

    def call(self, operator: Token, function: str, arguments: list[Node], target: Node | None = None) -> Node:
        """Make a call, or what a macro of this name makes of it."""
        try:
            expanded = expand(self.nodes, operator.offset, function, target, arguments)
        except MacroError as error:
            raise self.error(error.args[0], error.args[1]) from None
        if expanded is not None:
            return expanded
        return Call(self.nodes.number(), operator.offset, function, target, arguments)
