"""`google.protobuf.Any`, which holds another message in its binary form."""

import pytest

from dra_driver.cel import DeviceInput, EvaluationError, compile_selector
from dra_driver.cel.wire import Wire, read_fields


def packed(name: str, content: str = "") -> str:
    """Write a packed message; its bytes are hexadecimal."""
    text = "".join(f"\\x{byte:02x}" for byte in bytes.fromhex(content))
    return f"google.protobuf.Any{{type_url: 'type.example.com/google.protobuf.{name}', value: b'{text}'}}"


ONE = b"\x0a\x19google.protobuf.BoolValue\x12\x02\x08\x01".hex()
TRUE = {
    "a_number": f"{packed('Int64Value', '08 01')} + 1 == 2",
    "nothing_is_zero": f"{packed('StringValue')} == ''",
    "the_last_number_wins": f"{packed('Int64Value', '08 01 08 02')} == 2",
    "an_unknown_field_is_skipped": f"{packed('Int64Value', '12 01 61 1b 08 05 1c')} == 0",
    "a_field_written_otherwise_is_skipped": f"{packed('Int64Value', '0d 01 00 00 00')} == 0",
    "a_negative_number": f"{packed('Int32Value', '08 ff ff ff ff ff ff ff ff ff 01')} == -1",
    "an_unsigned_number_of_32_bits": f"{packed('UInt32Value', '08 ff ff ff ff ff 01')} == 4294967295u",
    "a_bool": f"{packed('BoolValue', '08 02')} == true",
    "bytes": f"{packed('BytesValue', '0a 02 ff 00')} == b'\\xff\\x00'",
    "a_float": f"{packed('FloatValue', '0d 00 00 80 3f')} == 1.0",
    "a_double": f"{packed('DoubleValue', '09 00 00 00 00 00 00 f0 3f')} == 1.0",
    "a_duration": f"{packed('Duration', '08 01 10 05')} == duration('1.000000005s')",
    "a_timestamp": f"{packed('Timestamp', '08 01')} == timestamp(1)",
    "an_empty_message": f"{packed('Empty')} == google.protobuf.Empty{{}}",
    "an_empty_message_with_something_unknown": f"{packed('Empty', '08 01')} != google.protobuf.Empty{{}}",
    "a_value_of_json": f"{packed('Value', '1a 01 61')} == 'a'",
    "the_last_value_wins": f"{packed('Value', '1a 01 61 20 01')} == true",
    "a_null": f"{packed('Value', '1a 01 61 08 00')} == null && {packed('Value')} == null",
    "a_number_of_json": f"{packed('Value', '11 00 00 00 00 00 00 f0 3f')} == 1.0",
    "a_list": f"{packed('ListValue', '0a 03 1a 01 61 0a 00')} == [dyn('a'), dyn(null)]",
    "lists_in_one_value_are_joined": f"{packed('Value', '32 02 0a 00 32 04 0a 02 20 01')} == [dyn(null), dyn(true)]",
    "a_struct": f"{packed('Struct', '0a 08 0a 01 6b 12 03 1a 01 61')} == {{'k': 'a'}}",
    "a_key_without_a_value": f"{packed('Struct', '0a 03 0a 01 6b')} == {{'k': null}}",
    "a_struct_in_a_value": f"{packed('Value', '2a 05 0a 03 0a 01 6b')}.k == null",
    "one_in_another": f"{packed('Any', ONE)} == true",
}
FAULTS = {
    "no_name": "google.protobuf.Any{} == 1",
    "an_unknown_name": f"{packed('Api')} == 1",
    "an_entry_of_a_struct": f"{packed('Struct.FieldsEntry')} == 1",
    "a_number_that_ends_too_early": f"{packed('Int64Value', '08')} == 0",
    "a_number_beyond_64_bits": f"{packed('UInt64Value', '08 ff ff ff ff ff ff ff ff ff 02')} == 0u",
    "a_number_without_end": f"{packed('UInt64Value', '08 80 80 80 80 80 80 80 80 80 80 01')} == 0u",
    "bytes_that_end_too_early": f"{packed('BytesValue', '0a 05 61')} == b''",
    "text_that_is_no_utf8": f"{packed('StringValue', '0a 01 ff')} == ''",
    "an_unknown_kind_of_field": f"{packed('Empty', '0f')} == 1",
    "field_zero": f"{packed('Empty', '00 01')} == 1",
    "the_end_of_no_group": f"{packed('Empty', '0c')} == 1",
    "the_end_of_another_group": f"{packed('Empty', '0b 14')} == 1",
    "nothing_in_another": f"{packed('Any')} == 1",
}


@pytest.mark.parametrize("expression", TRUE.values(), ids=TRUE)
def test_a_packed_message_is_the_value_in_it(expression: str) -> None:
    assert compile_selector(expression).evaluate(DeviceInput("d")) is True


@pytest.mark.parametrize("expression", FAULTS.values(), ids=FAULTS)
def test_a_packed_message_that_cannot_be_read_is_an_error(expression: str) -> None:
    selector = compile_selector(expression)

    with pytest.raises(EvaluationError):
        selector.evaluate(DeviceInput("d"))


@pytest.mark.parametrize("content", ["0b" * 3000, "0b" * 101 + "0c" * 101], ids=["open", "closed"])
def test_groups_nested_too_deeply_are_refused(content: str) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        list(read_fields(bytes.fromhex(content)))


def test_messages_packed_in_each_other_too_deeply_are_an_error() -> None:
    content = b""
    for _ in range(150):
        content = b"\x0a\x13google.protobuf.Any\x12" + _varint(len(content)) + content

    selector = compile_selector(f"{packed('Any', content.hex())} == 1")

    with pytest.raises(EvaluationError):
        selector.evaluate(DeviceInput("d"))


def test_the_fields_of_a_message_are_read_in_order() -> None:
    fields = list(read_fields(bytes.fromhex("08 96 01 12 01 61")))

    assert [(field.number, field.wire, field.content) for field in fields] == [
        (1, Wire.VARINT, 150),
        (2, Wire.BYTES, b"a"),
    ]
    assert b"".join(field.raw for field in fields) == bytes.fromhex("08 96 01 12 01 61")


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 0x7F | 0x80]) + _varint(number >> 7)
