"""Messages of Protocol Buffers in expressions, which are values of the language."""

import pytest

from dra_driver.api.resource_v1 import DeviceAttribute
from dra_driver.cel import CompileError, DeviceInput, EvaluationError, compile_attribute, compile_selector

PB = "google.protobuf"
ENTRY = f"{PB}.Struct.FieldsEntry"
ZONED = "timestamp('2024-01-01T00:00:00+01:00')"
TRUE = {
    "a_wrapper_is_its_value": f"{PB}.Int64Value{{value: 1}} + 1 == 2 && {PB}.BoolValue{{value: true}}",
    "an_empty_wrapper_is_zero_and_not_null": f"{PB}.StringValue{{}} == '' && {PB}.Int64Value{{}} != null",
    "a_float_is_rounded_to_32_bits": f"{PB}.FloatValue{{value: 16777217.0}} == 16777216.0",
    "a_float_too_large_is_infinite": f"{PB}.FloatValue{{value: -1e300}} == -1.0 / 0.0",
    "a_wrapper_takes_a_wrapper": f"{PB}.UInt32Value{{value: {PB}.UInt64Value{{value: 1u}}}} == 1u",
    "the_last_of_equal_fields_wins": f"{PB}.Int64Value{{value: 1, value: 2}} == 2",
    "an_optional_field_that_is_absent_is_left_out": f"{PB}.Int64Value{{?value: optional.none()}} == 0",
    "an_optional_field_that_is_there_is_set": f"{PB}.Int64Value{{?value: optional.of(3)}} == 3",
    "a_duration_has_seconds_and_nanos": f"{PB}.Duration{{seconds: 1, nanos: 5}} == duration('1.000000005s')",
    "a_duration_out_of_range_is_the_longest": f"int({PB}.Duration{{seconds: 9223372037}}) == 9223372036854775807",
    "a_timestamp_has_seconds": f"{PB}.Timestamp{{seconds: 1}} == timestamp(1) && {PB}.Timestamp{{}} == timestamp(0)",
    "a_struct_is_a_map_of_doubles": f"{PB}.Struct{{fields: {{'a': 1}}}}.a == 1.0",
    "a_number_that_no_double_holds_is_text": f"{PB}.ListValue{{values: [9007199254740992]}} == ['9007199254740992']",
    "bytes_in_a_list_are_base64": f"{PB}.ListValue{{values: [b'a']}} == ['YQ==']",
    "times_in_a_list_are_text": f"{PB}.ListValue{{values: [duration('1.5s')]}} == ['1.5s']",
    "an_empty_value_is_null": f"{PB}.Value{{}} == null && {PB}.Value{{null_value: {PB}.NullValue.NULL_VALUE}} == null",
    "a_value_is_what_its_field_holds": f"{PB}.Value{{list_value: [true]}} == [true]",
    "a_local_variable_does_not_hide_a_message": f"[1].all(google, {PB}.Int64Value{{value: google}} == google)",
    "a_leading_dot_changes_nothing": f".{PB}.Int64Value{{value: 1}} == 1",
    "an_address_is_a_text": f"{PB}.StringValue{{value: dyn(ip('::1'))}} == '::1'",
    "a_version_is_a_text": f"{PB}.StringValue{{value: dyn(semver('1.2.3'))}} == '1.2.3'",
    "a_quantity_is_a_text": f"{PB}.StringValue{{value: dyn(quantity('1024Ki'))}} == '1Mi'",
    "a_range_is_a_text": f"{PB}.Struct{{fields: dyn({{cidr('10.0.0.0/8'): 1}})}} == {{'10.0.0.0/8': 1.0}}",
    "numbers_are_bytes": f"{PB}.BytesValue{{value: dyn([1u, 255u])}} == b'\\x01\\xff'",
    "a_map_without_entries_is_a_list": f"{PB}.Value{{list_value: dyn({{}})}} == []",
    "a_time_in_a_list_keeps_its_zone": f"{PB}.ListValue{{values: [{ZONED}]}} == ['2024-01-01T00:00:00+01:00']",
    "an_empty_message_equals_itself": f"{PB}.Empty{{}} == {PB}.Empty{{}} && {PB}.Empty{{}} != null",
    "an_empty_message_has_a_type": f"type({PB}.Empty{{}}) == {PB}.Empty && {PB}.Empty != {ENTRY}",
    "an_empty_message_is_an_empty_map_in_json": f"{PB}.ListValue{{values: [{PB}.Empty{{}}]}} == [{{}}]",
    "an_empty_message_is_a_zero": f"!optional.ofNonZeroValue({PB}.Empty{{}}).hasValue()",
    "an_entry_has_fields": f"{ENTRY}{{key: 'a', value: 1}}.key == 'a' && {ENTRY}{{key: 'a', value: 1}}.value == 1.0",
    "a_field_that_is_not_set_is_zero": f"{ENTRY}{{}}.key == '' && {ENTRY}{{}}.value == null",
    "has_tells_null_from_nothing": f"has({ENTRY}{{value: null}}.value) && !has({ENTRY}{{}}.value)",
    "has_takes_an_empty_key_for_none": f"!has({ENTRY}{{key: ''}}.key) && !{ENTRY}{{}}.?key.hasValue()",
    "entries_are_equal_if_their_fields_are": f"{ENTRY}{{value: {{'a': 1}}}} == {ENTRY}{{value: {{'a': 1.0}}}}",
    "an_entry_with_null_is_none_without": f"{ENTRY}{{value: null}} != {ENTRY}{{}}",
    "an_entry_without_a_number_equals_nothing": f"{ENTRY}{{value: 0.0 / 0.0}} != {ENTRY}{{value: 0.0 / 0.0}}",
    "an_entry_in_json_is_a_map_of_what_is_set": f"{ENTRY}{{value: {ENTRY}{{key: 'k'}}}}.value == {{'key': 'k'}}",
    "an_entry_is_a_key_by_identity": f"cel.bind(e, {ENTRY}{{}}, e in {{e: 1}}) && !({ENTRY}{{}} in {{{ENTRY}{{}}: 1}})",
    "a_message_of_the_device_is_not_made_where_nobody_asks": "true || kubernetes.DRADevice{driver: 'a'} == device",
}
FAULTS = {
    "a_number_beyond_32_bits": f"{PB}.Int32Value{{value: 2147483648}} == 1",
    "nanoseconds_beyond_32_bits": f"{PB}.Duration{{nanos: 2147483648}} == duration('1s')",
    "a_value_of_another_type": f"{PB}.Int64Value{{value: dyn(1u)}} == 1",
    "null_for_a_number": f"{PB}.Int64Value{{value: dyn(null)}} == 0",
    "a_number_that_is_no_byte": f"{PB}.BytesValue{{value: dyn([256u])}} == b''",
    "an_error_in_a_field": f"{PB}.Int64Value{{value: 1 / 0}} == 1",
    "a_plain_value_after_a_question_mark": f"{PB}.Int64Value{{?value: dyn(1)}} == 1",
    "a_quantity_in_a_struct": f"{PB}.Struct{{fields: {{'a': quantity('1')}}}}.a == '1'",
    "a_list_for_the_fields_of_a_struct": f"{PB}.Struct{{fields: dyn([1])}} == {{}}",
    "a_message_of_the_device": "kubernetes.DRADevice{} == device",
    "a_field_that_no_message_has": f"dyn({PB}.Empty{{}}).a == 1",
    "a_test_for_a_field_that_no_message_has": f"has(dyn({ENTRY}{{}}).a)",
    "an_index_of_a_message": f"dyn({ENTRY}{{}})[1] == 1",
    "a_key_of_another_type": f"{ENTRY}{{key: dyn(1)}}.key == ''",
    "an_entry_in_json_without_a_number": f"{ENTRY}{{value: {ENTRY}{{value: 0.0 / 0.0}}}}.value == null",
    "a_loop_over_a_message": f"dyn({PB}.Empty{{}}).all(x, true)",
}
REFUSED = {
    "an_unknown_field": (f"{PB}.Duration{{second: 1}} == duration('1s')", "did you mean 'seconds'"),
    "a_field_of_another_type": (f"{PB}.Int64Value{{value: 'a'}} == 1", "want a int"),
    "null_for_a_field": (f"{PB}.Int64Value{{value: null}} == 1", "want a int"),
    "a_field_of_the_device_of_another_type": ("kubernetes.DRADevice{driver: 1} == device", "want a string"),
    "a_plain_value_after_a_question_mark": (f"{PB}.Int64Value{{?value: 1}} == 1", "want an optional value"),
    "a_field_of_a_wrapper": (f"{PB}.Int64Value{{value: 1}}.value == 1", "no field 'value'"),
    "a_field_of_an_empty_message": (f"{PB}.Empty{{}}.a == 1", "no field 'a'"),
    "a_field_of_an_entry": (f"{ENTRY}{{}}.ky == ''", "did you mean 'key'"),
    "an_empty_message_for_a_number": (f"{PB}.Int64Value{{value: {PB}.Empty{{}}}} == 1", "want a int"),
    "the_type_of_what_may_be_any": (f"type(1) == {PB}.Any", "unknown name"),
    "a_type_that_is_no_message": ("int{} == 1", "no message"),
    "a_name_of_nothing": ("Foo{} == 1", "no message"),
}


@pytest.mark.parametrize("expression", TRUE.values(), ids=TRUE)
def test_a_message_is_a_value_of_the_language(expression: str) -> None:
    assert compile_selector(expression).evaluate(DeviceInput("d")) is True


@pytest.mark.parametrize("expression", FAULTS.values(), ids=FAULTS)
def test_a_message_that_cannot_be_made_is_an_error(expression: str) -> None:
    selector = compile_selector(expression)

    with pytest.raises(EvaluationError):
        selector.evaluate(DeviceInput("d"))


@pytest.mark.parametrize(("expression", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_message_that_can_never_be_made_is_refused(expression: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compile_selector(expression)


def test_a_message_costs_forty_and_its_fields() -> None:
    selector = compile_selector(f"{PB}.StringValue{{value: device.driver}} == 'd'")

    assert selector.estimated_cost == 43
    assert selector.evaluate_with_cost(DeviceInput("d")) == (True, 43)


def test_what_the_fields_of_a_message_read_is_known() -> None:
    expression = f"{PB}.Int64Value{{value: device.attributes['d'].index}}"
    one, two = (DeviceInput("d", {"index": DeviceAttribute(int=number)}) for number in (1, 2))

    attribute = compile_attribute(expression)

    assert (attribute.evaluate(one), attribute.evaluate(two)) == (1, 2)
    assert attribute.key(one) != attribute.key(two)
