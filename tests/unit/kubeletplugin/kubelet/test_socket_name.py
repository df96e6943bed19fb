from pathlib import Path

import pytest

from kubeletplugin.kubelet.socket_name import (
    SOCKET_PATH_LIMIT,
    build_registration_socket,
    build_service_socket,
    is_registration_socket,
    is_service_socket,
    validate_pod_uid,
)

DRIVER = "accel.dra-driver.io"
UID = "0f3d2c1b-aaaa-bbbb-cccc-0123456789ab"
OTHER = "0f3d2c1b-aaaa-bbbb-cccc-0123456789ac"
STATIC = "0123456789abcdef0123456789abcdef"
REGISTRY = Path("/var/lib/kubelet/plugins_registry")
LONGEST_DRIVER = "d" * 63


def plugin_dir(driver: str, kubelet_dir: str = "/var/lib/kubelet") -> Path:
    return Path(kubelet_dir) / "plugins" / driver


def test_a_plugin_without_a_pod_has_the_plain_names() -> None:
    assert build_service_socket(plugin_dir(DRIVER), "") == plugin_dir(DRIVER) / "dra.sock"
    assert build_registration_socket(REGISTRY, DRIVER, "") == REGISTRY / f"{DRIVER}-reg.sock"


def test_a_pod_has_names_of_its_own() -> None:
    assert build_service_socket(plugin_dir(DRIVER), UID).name == f"dra-{UID}.sock"
    assert build_registration_socket(REGISTRY, DRIVER, UID).name == f"{DRIVER}-{UID}-reg.sock"


@pytest.mark.parametrize("driver", ["d", DRIVER, LONGEST_DRIVER], ids=len)
def test_names_of_any_driver_fit_and_differ_and_are_known_again(driver: str) -> None:
    uids = ("", UID, OTHER, STATIC)
    services = [build_service_socket(plugin_dir(driver), uid) for uid in uids]
    registrations = [build_registration_socket(REGISTRY, driver, uid) for uid in uids]
    for paths in (services, registrations):
        assert len(set(paths)) == len(uids)
        assert all(len(str(path).encode()) <= SOCKET_PATH_LIMIT for path in paths)
    assert all(is_service_socket(path.name) for path in services)
    assert all(is_registration_socket(path.name, driver) for path in registrations)


@pytest.mark.parametrize(
    "name",
    [
        "other.io-reg.sock",
        f"{DRIVER}.example-reg.sock",
        f"{DRIVER}-two-reg.sock",  # a driver may be called like this
        f"{DRIVER}-two-{UID}-reg.sock",
        f"{DRIVER}-{UID}.sock",
        f"x{DRIVER}-{UID}-reg.sock",
        "-reg.sock",
        "",
    ],
)
def test_sockets_of_other_drivers_are_left_alone(name: str) -> None:
    assert not is_registration_socket(name, DRIVER)


@pytest.mark.parametrize("name", ["dra.sock.bak", "dra-x.sock", "xdra.sock", f"dra-{UID}.sock~", "plugin.lock"])
def test_other_files_of_the_directory_are_no_sockets(name: str) -> None:
    assert not is_service_socket(name)


@pytest.mark.parametrize("uid", ["", UID, STATIC])
def test_uids_that_pods_have_are_taken(uid: str) -> None:
    assert validate_pod_uid(uid) == ()


@pytest.mark.parametrize("uid", ["x", "../x", UID.upper(), UID + "0", "$(POD_UID)", UID + "\n"])
def test_what_is_no_uid_of_a_pod_is_named(uid: str) -> None:
    (problem,) = validate_pod_uid(uid)
    assert "is no UID, want the Pod's metadata.uid" in problem
