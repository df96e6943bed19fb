"""The question, made ready for the search: candidates in order, requests, and what each pair of them is worth.

Cells are filled when they are first asked for, since upstream evaluates selectors only on devices that it reaches, and
an expression that fails makes the whole allocation fail.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field

from controller.allocator.blocker import Blocker, BlockerCode
from controller.allocator.candidate import Candidate, find_attribute
from controller.allocator.capacity import AmountError, plan_demand
from controller.allocator.cell import FIT, MISFITS, UNLISTED, Cell, Misfit, fitting_cell
from controller.allocator.constraint import Constraint, Value, attribute_value
from controller.allocator.error import AllocationError, ErrorClass
from controller.allocator.feature import Features
from controller.allocator.pool import Pool, matches_device_node
from controller.allocator.request import (
    Alternative,
    ClaimPlan,
    Request,
    RequestParser,
    claim_name,
    parse_constraints,
)
from controller.allocator.selector import SelectorCache
from controller.allocator.state import AllocatedState
from controller.allocator.stock import Stock
from controller.allocator.taint import untolerated_taint
from dra_driver.api.allocation_validation import RESULTS_MAX
from dra_driver.api.core_v1 import Node
from dra_driver.api.resource_v1 import DeviceClass, DeviceRequest, ResourceClaim

_OPTIONAL_OPERATIONS = "DRAOptionalNodeOperations"


@dataclass(slots=True, eq=False)
class Column:
    """What a constraint sees of the candidates: False in `values` where nobody has looked yet.

    `seen` are the candidates where somebody has, `masks` those of each value.
    """

    values: list[Value | bool | None]
    seen: int = 0
    masks: dict[Value | None, int] = field(default_factory=dict)

    def learn(self, index: int, value: Value | None) -> None:
        """Remember a value."""
        self.values[index] = value
        self.seen |= 1 << index
        self.masks[value] = self.masks.get(value, 0) | 1 << index


@dataclass(slots=True, eq=False)
class Table:
    """A question about one node; `known` is its stock, if that is kept up to date."""

    node: Node
    features: Features
    selectors: SelectorCache
    state: AllocatedState
    pools: Sequence[Pool]
    refuses_stale_shares: bool = True
    known: InitVar[Stock | None] = None
    stock: Stock = field(init=False)
    candidates: list[Candidate] = field(init=False)
    pool_of: list[Pool] = field(init=False)
    held: list[bool] = field(init=False)
    forgiven: frozenset[Blocker] = frozenset()
    uncounted: frozenset[Pool] = frozenset()
    unmetered: frozenset[int] = frozenset()
    claims: list[ClaimPlan] = field(default_factory=list)
    columns: dict[tuple[str, str | None], Column] = field(default_factory=dict)

    def __post_init__(self, known: Stock | None) -> None:
        self.stock = known or Stock(self.pools, self.state, self.refuses_stale_shares)
        self.candidates, self.pool_of, self.held = self.stock.candidates, self.stock.pool_of, self.stock.held

    def renew(self, claims: Sequence[ResourceClaim]) -> None:
        """Ask the same of `claims`, which are like those before but for their names, as things stand now."""
        for plan, claim in zip(self.claims, claims, strict=True):
            plan.renew(claim)

    def plan(self, claims: Sequence[ResourceClaim], classes: Mapping[str, DeviceClass]) -> None:
        """Read the claims, request by request. Raises AllocationError."""
        for index, claim in enumerate(claims):
            self.claims.append(_plan_claim(self, claim, index, classes))

    def cell(self, alternative: Alternative, index: int) -> Cell:
        """Give what candidate `index` is worth for the request. Raises AllocationError as upstream would."""
        cell = alternative.cells[index]
        if cell is None:
            candidate = self.candidates[index]
            cell = None if self.forgiven else candidate.cells.get(alternative.signature)
            if cell is None:
                try:
                    cell = self._evaluate(alternative, candidate)
                except AllocationError as error:
                    error.locate(alternative.path)
                    raise
                if not self.forgiven:
                    candidate.remember(alternative.signature, cell)
            alternative.cells[index] = cell
            alternative.seen |= 1 << index
            if cell.misfit is not None:
                alternative.unfit |= 1 << index
        return cell

    def value(self, alternative: Alternative, constraint: Constraint, index: int) -> Value | None:
        """Give what the constraint sees of candidate `index`. Raises AllocationError if a derived attribute fails."""
        column = self.column(alternative, constraint)
        value = column.values[index]
        if isinstance(value, bool):
            expression = alternative.derived.get(constraint.attribute)
            try:
                value = self._read_value(constraint, expression, self.candidates[index])
            except AllocationError as error:
                error.locate(alternative.path)
                raise
            column.learn(index, value)
        return value

    def column(self, alternative: Alternative, constraint: Constraint) -> Column:
        """Give what is known of what the constraint sees of the candidates."""
        key = (constraint.attribute, alternative.derived.get(constraint.attribute))
        column = self.columns.get(key)
        if column is None:
            column = self.columns[key] = Column([False] * len(self.candidates))
        return column

    def _read_value(self, constraint: Constraint, expression: str | None, candidate: Candidate) -> Value | None:
        if expression is not None:
            attribute = self.selectors.derive(candidate, constraint.attribute, expression)
        else:
            found = find_attribute(candidate.device.attributes, constraint.attribute, candidate.id[0])
            if found is None:
                return None
            attribute = found
        return attribute_value(attribute, lists=self.features.list_type_attributes)

    def misfits(self, alternative: Alternative, candidate: Candidate) -> Iterator[Misfit]:
        """Yield every reason why the device can never serve the request, in upstream's order.

        Raises AllocationError, also for selectors that upstream would not reach.
        """
        yield from self._select(alternative, candidate)
        cell = self._measure(alternative, candidate)
        if cell.misfit is not None:
            yield cell.misfit
        yield from self._block(alternative, candidate)

    def _evaluate(self, alternative: Alternative, candidate: Candidate) -> Cell:
        if self.forgiven:
            return self._evaluate_leniently(alternative, candidate)
        for misfit in self._select(alternative, candidate):
            return MISFITS[misfit]
        cell = self._measure(alternative, candidate)
        if cell.misfit is not None:
            return cell
        for misfit in self._block(alternative, candidate):
            return MISFITS[misfit]
        return cell

    def _evaluate_leniently(self, alternative: Alternative, candidate: Candidate) -> Cell:
        """Overlook what is forgiven, but hold `All` to the devices that it means; errors are misfits."""
        try:
            for misfit in self.misfits(alternative, candidate):
                is_listed = alternative.is_all and misfit in UNLISTED
                if is_listed or find_blocker(misfit, alternative, candidate) not in self.forgiven:
                    return MISFITS[misfit]
            cell = self._measure(alternative, candidate)
        except AllocationError:
            return MISFITS[Misfit.REQUEST_SELECTOR]
        return FIT if cell.misfit is not None else cell

    def _block(self, alternative: Alternative, candidate: Candidate) -> Iterator[Misfit]:
        """Yield what takes a device away that `All` would still list."""
        features = self.features
        if candidate.slice.spec.skip_node_operations and features.knows_node_operations:
            declared = self.node.status.declared_features
            if not features.optional_node_operations or _OPTIONAL_OPERATIONS not in declared:
                yield Misfit.NODE_OPERATIONS
        if not features.partitionable_devices and candidate.device.consumes_counters:
            yield Misfit.PARTITIONS_OFF
        taints = candidate.taints if features.device_taints else ()
        if taints and untolerated_taint(taints, alternative.tolerations) is not None:
            yield Misfit.TAINT

    def _select(self, alternative: Alternative, candidate: Candidate) -> Iterator[Misfit]:
        if candidate.device.binding_conditions and not self.features.device_binding_and_status:
            yield Misfit.BINDING_CONDITIONS
        device_class = alternative.device_class
        subject = f"class {device_class.metadata.name}"
        if not self.selectors.matches(candidate, device_class.spec.selectors, subject):
            yield Misfit.CLASS_SELECTOR
        if not self.selectors.matches(candidate, alternative.selectors, f"claim {alternative.claim_name}"):
            yield Misfit.REQUEST_SELECTOR
        if candidate.slice.spec.per_device_node_selection and not matches_device_node(
            self.node, candidate.device, candidate.slice
        ):
            yield Misfit.OTHER_NODE

    def _measure(self, alternative: Alternative, candidate: Candidate) -> Cell:
        if not self.features.consumable_capacity or not (candidate.capacity or alternative.capacity):
            return FIT
        key = (*alternative.capacity_key, self.features.fractional_capacity_range)
        cell = candidate.demands.get(key)
        if cell is None:
            cell = candidate.demands[key] = self._plan_cell(alternative, candidate)
        return cell

    def _plan_cell(self, alternative: Alternative, candidate: Candidate) -> Cell:
        try:
            demand = plan_demand(
                alternative.capacity,
                candidate.device.capacity,
                fractional=self.features.fractional_capacity_range,
            )
        except AmountError as error:
            raise AllocationError(f"{alternative.subject}: device {candidate.subject}: {error}") from error
        return MISFITS[Misfit.CAPACITY] if isinstance(demand, str) else fitting_cell(demand)


def find_blocker(misfit: Misfit, alternative: Alternative, candidate: Candidate) -> Blocker:
    """Give the blocker that a misfit stands for: of the device, or of the device and the request."""
    code = BlockerCode(misfit.value)
    if misfit in (Misfit.CLASS_SELECTOR, Misfit.REQUEST_SELECTOR, Misfit.CAPACITY, Misfit.TAINT):
        return Blocker(code, alternative.path, candidate.subject)
    return Blocker(code, device=candidate.subject)


def _plan_claim(table: Table, claim: ResourceClaim, index: int, classes: Mapping[str, DeviceClass]) -> ClaimPlan:
    plan = ClaimPlan(claim, claim_name(claim))
    least = 0
    parser = RequestParser(plan.name, classes, table.features)
    path = plan.name
    try:
        for position, request in enumerate(claim.spec.devices.requests):
            path = f"{plan.name}/{request.name}"
            planned = _plan_request(table, parser, request, (index, position))
            _check_limit(planned, least, f"claim {plan.name}, request {request.name}")
            least += planned.least
            plan.requests.append(planned)
        path = plan.name
        plan.constraints = parse_constraints(claim.spec.devices.constraints, plan.name, table.features)
    except AllocationError as error:
        error.locate(path)
        raise
    plan.is_configured = bool(claim.spec.devices.config)
    for planned in plan.requests:
        for alternative in planned.alternatives:
            plan.is_configured = plan.is_configured or bool(alternative.device_class.spec.config)
            names = (alternative.parent, alternative.name) if alternative.parent else (alternative.name, "")
            alternative.constraints = tuple(entry for entry in plan.constraints if entry.covers(*names))
    return plan


def _plan_request(table: Table, parser: RequestParser, request: DeviceRequest, position: tuple[int, int]) -> Request:
    parser.validate(request)
    alternatives = []
    for alternative in parser.parse(request, position):
        alternative.cells = [None] * len(table.candidates)
        alternative.signature = table.selectors.number(
            (alternative.signed, table.features, table.node.status.declared_features)
        )
        alternative.order = range(len(table.candidates))
        if alternative.is_all:
            _list_all(table, alternative)
        alternatives.append(alternative)
    return Request(tuple(alternatives), bool(request.first_available))


def _check_limit(planned: Request, before: int, subject: str) -> None:
    if planned.least > RESULTS_MAX - before:
        raise AllocationError(
            f"{subject}: {planned.least} devices are too many with {before} before them, want at most {RESULTS_MAX} in "
            "a claim",
            ErrorClass.LIMIT,
        )


def _list_all(table: Table, alternative: Alternative) -> None:
    """Find the devices that `All` means, in use or not; every pool of the node must be sound."""
    devices: list[int] = []
    start = 0
    for pool in table.pools:
        if pool.is_incomplete:
            raise AllocationError(
                f"{alternative.subject}: asks for all devices, but pool {'/'.join(pool.id)} is being updated, want all "
                "slices of its newest generation",
                ErrorClass.INCOMPLETE,
            )
        if pool.invalid:
            text = f"{alternative.subject}: asks for all devices, but pool {'/'.join(pool.id)}: {pool.invalid}"
            raise AllocationError(text, ErrorClass.INVALID)
        end = start + len(pool.candidates)
        devices += [index for index in range(start, end) if table.cell(alternative, index).misfit not in UNLISTED]
        start = end
    alternative.devices = tuple(devices)
    alternative.count = len(devices)
