"""The plugin as a process: what it says when something is wrong, and how it lives on."""

import os
import socket
import subprocess

import pytest

from tests.support.builder import DRIVER
from tests.support.kubelet import Kubelet, PluginError
from tests.support.plugin import PluginNode
from tests.support.wait import until


async def test_it_is_ready_once_registered_and_published(node: PluginNode) -> None:
    plugin = await node.start_ready()
    assert (await plugin.get("/healthz"))[0] == 200
    assert "the kubelet has not accepted the plugin" in (await plugin.get("/readyz"))[1]
    async with Kubelet.registered(node.registrar) as kubelet:
        assert (kubelet.driver, kubelet.version) == (DRIVER, "v1")
        status, text = await plugin.get("/readyz")
        assert (status, text) == (200, "registered: ok\npublished: ok\nbackground: ok\n")
    _, metrics = await plugin.get("/metrics")
    for series in ('dra_kubeletplugin_prepare_total{result="error"} 0.0', "dra_kubeletplugin_registered 1.0"):
        assert series in metrics


async def test_sigterm_ends_it_cleanly_and_leaves_the_slices(node: PluginNode) -> None:
    plugin = await node.start_ready()
    assert await plugin.terminate() == 0
    assert not node.registrar.exists()
    assert node.devices()


async def test_a_refusal_by_the_kubelet_is_answered_with_an_error(node: PluginNode) -> None:
    plugin = await node.start_ready()
    with pytest.raises(Exception, match="name taken"):
        async with Kubelet.registered(node.registrar, refusal="name taken"):
            pass
    assert (await plugin.get("/readyz"))[0] == 503
    async with Kubelet.registered(node.registrar):
        assert (await plugin.get("/readyz"))[0] == 200


async def test_a_kubelet_that_knows_no_version_finds_none(node: PluginNode) -> None:
    await node.start_ready()
    with pytest.raises(PluginError, match=r"v1\.DRAPlugin.*v1beta1\.DRAPlugin"):
        async with Kubelet.registered(node.registrar, known=("v9.DRAPlugin",)):
            pass


async def test_sockets_of_a_killed_plugin_are_replaced(node: PluginNode) -> None:
    plugin = await node.start_ready()
    await plugin.kill()
    assert node.registrar.exists()
    await node.start_ready()
    async with Kubelet.registered(node.registrar) as kubelet:
        assert await kubelet.prepare() == {}


async def test_a_lock_that_cannot_be_written_stops_nobody_but_a_second_plugin(node: PluginNode) -> None:
    node.plugin_dir.mkdir(parents=True)
    (node.plugin_dir / "plugin.lock").symlink_to("/dev/full")
    first = await node.start_ready()
    second = await node.start()
    assert await second.wait() == 2
    assert f"in use by another plugin, process {first.pid}" in second.text.splitlines()[-1]


async def test_a_second_plugin_on_the_same_socket_says_who_has_it(node: PluginNode) -> None:
    first = await node.start_ready()
    second = await node.start()
    assert await second.wait() == 2
    assert second.text == f"dra-kubeletplugin: {node.service}: in use by another plugin, process {first.pid}"
    async with Kubelet.registered(node.registrar) as kubelet:
        assert await kubelet.prepare() == {}


async def test_restarting_writes_nothing(node: PluginNode) -> None:
    await (await node.start_ready()).terminate()
    before = node.server.all("resourceslices")
    node.server.requests.clear()
    plugin = await node.start_ready()
    await plugin.published()
    assert node.server.all("resourceslices") == before
    written = [each for each in node.server.requests if each.method != "GET" and "dryRun" not in each.query]
    assert written == []


async def test_devices_that_fall_ill_leave_and_come_are_published(node: PluginNode) -> None:
    await node.start_ready()
    names = list(node.devices())
    node.overrides.write_text("unhealthy:\n  0: {reason: XidCritical, message: fell off the bus}\nremoved: [1]\n")
    await until(lambda: names[1] not in node.devices())
    (taint,) = node.devices()[names[0]]["taints"]
    await until(lambda: node.server.all("events", "default"))
    assert (taint["key"], taint["value"], taint["effect"]) == ("dra-driver.io/unhealthy", "XidCritical", "NoSchedule")
    events = node.server.all("events", "default")
    assert [(event["reason"], event["message"]) for event in events] == [
        ("DeviceUnhealthy", f"device node-a/{names[0]}: XidCritical: fell off the bus")
    ]
    node.overrides.write_text("")
    await until(lambda: names[1] in node.devices() and "taints" not in node.devices()[names[0]])
    assert list(node.devices()) == names


async def test_an_api_server_that_is_away_at_the_start_is_waited_for(node: PluginNode) -> None:
    await node.server.stop()
    plugin = await node.start()
    await plugin.logged("plugin started")
    async with Kubelet.registered(node.registrar) as kubelet:
        assert await kubelet.prepare() == {}
        await node.server.start()
        await until(node.devices, within_s=30)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        pytest.param({"simulated_profile": "h100"}, "profile 'h100': unknown, want", id="unknown profile"),
        pytest.param({"backend": None}, "--backend: none given, want 'nvidia' or 'simulated'", id="no backend"),
        pytest.param({"node_name": "Node_A"}, "--node-name: 'Node_A'", id="node name"),
        pytest.param({"driver_name": "x" * 64}, "--driver-name:", id="driver name"),
        pytest.param({"slots": 0}, "--slots: 0 sharers of one device, want 1 to 10000", id="slots"),
        pytest.param({"discovery_interval": 0}, "--discovery-interval: 0.0 seconds, want 0.01 to 86400", id="interval"),
        pytest.param({"discovery_interval": "nan"}, "--discovery-interval: nan seconds, want 0.01 to 86400", id="nan"),
        pytest.param({"discovery_interval": "inf"}, "--discovery-interval: inf seconds, want 0.01 to 86400", id="inf"),
        pytest.param({"http_address": "x" * 70 + ":80"}, ":80': no host can have that name", id="host"),
        pytest.param({"http_address": "8080"}, "'8080' is not an address, want host:port", id="address"),
        pytest.param(
            {"kubeconfig": "/nowhere/kubeconfig"}, "kubeconfig '/nowhere/kubeconfig': no such file", id="kubeconfig"
        ),
        pytest.param({"kubelet_dir": "/nowhere"}, "/nowhere/plugins_registry: no such directory", id="kubelet dir"),
        pytest.param({"cdi_dir": "/dev/null/cdi"}, "/dev/null", id="CDI dir"),
    ],
)
async def test_what_cannot_be_used_is_named_in_one_line(node: PluginNode, flags: dict[str, object], text: str) -> None:
    plugin = await node.start(**flags)
    assert await plugin.wait() == 2
    (line,) = [each for each in plugin.text.splitlines() if not each.startswith("{")]
    assert line.startswith("dra-kubeletplugin: ")
    assert text in line


async def test_all_wrong_settings_are_named_at_once(node: PluginNode) -> None:
    plugin = await node.start(slots=0, backend=None, http_address="8080")
    assert await plugin.wait() == 2
    for flag in ("--slots", "--backend", "--http-address"):
        assert flag in plugin.text


async def test_an_unknown_flag_is_named(node: PluginNode) -> None:
    plugin = await node.start(cdi_folder="/x")
    assert await plugin.wait() == 2
    assert "No such option: --cdi-folder" in plugin.text


async def test_a_malformed_profile_names_the_place_and_the_field(node: PluginNode) -> None:
    profile = node.folder / "profile.yaml"
    profile.write_text("description: odd\ndevices:\n  - {count: 1, vendr: nvidia}\n")
    plugin = await node.start(simulated_profile=profile)
    assert await plugin.wait() == 2
    assert str(profile) in plugin.text
    assert "vendr" in plugin.text
    assert "did you mean 'vendor'?" in plugin.text


PLACES = [
    pytest.param("plugins_registry/accel.dra-driver.io-reg.sock", id="registration socket"),
    pytest.param("plugins/accel.dra-driver.io/dra.sock", id="service socket"),
    pytest.param("plugins/accel.dra-driver.io/plugin.lock", id="lock of the plugins"),
    pytest.param("plugins/accel.dra-driver.io/claims/.lock", id="lock of the records"),
]


@pytest.mark.parametrize("place", PLACES)
async def test_an_empty_directory_in_the_place_of_a_file_is_replaced(node: PluginNode, place: str) -> None:
    path = node.kubelet_dir / place
    path.mkdir(parents=True)
    await node.start_ready()
    assert not path.is_dir()
    async with Kubelet.registered(node.registrar) as kubelet:
        assert await kubelet.prepare() == {}


@pytest.mark.parametrize("place", PLACES)
async def test_a_directory_in_the_place_of_a_file_is_named_if_something_is_in_it(node: PluginNode, place: str) -> None:
    path = node.kubelet_dir / place
    (path / "something").mkdir(parents=True)
    plugin = await node.start()
    assert await plugin.wait() == 2
    assert f"{path}: directory not empty, want this directory moved away" in plugin.text.splitlines()[-1]


# Root may write everywhere but on a read-only file system, which is mounted for the one process only.
READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
MAY_MOUNT = os.geteuid() == 0 and subprocess.run(("unshare", "--mount", "true"), check=False).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0 and not MAY_MOUNT, reason="root may write everywhere, and not mount here")
@pytest.mark.parametrize("name", ["plugins_registry", "plugins/accel.dra-driver.io"])
async def test_a_socket_directory_that_is_not_writable_is_named(node: PluginNode, name: str) -> None:
    folder = node.kubelet_dir / name
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o500)
    within = ("unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(folder)) if MAY_MOUNT else ()
    plugin = await node.start(within)
    assert await plugin.wait() == 2
    assert str(folder) in plugin.text.splitlines()[-1]
    folder.chmod(0o700)


async def test_an_address_that_is_taken_is_named(node: PluginNode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        plugin = await node.start(http_address=address)
        assert await plugin.wait() == 2
    assert f"--http-address: '{address}': address already in use" in plugin.text


async def test_settings_come_from_the_environment(node: PluginNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRA_DRIVER_SLOTS", "0")
    plugin = await node.start()
    assert await plugin.wait() == 2
    assert "--slots: 0" in plugin.text
