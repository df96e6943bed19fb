"""etcd, API server, scheduler and controller-manager of a cluster, in the control plane's namespace."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import network
from tests.cluster.host import Host
from tests.cluster.network import Namespace
from tests.cluster.pki import Pki
from tests.cluster.process import wait_until

SERVER = f"https://{network.SERVICE_ADDRESS}:443"
NAMES = ("kube-controller-manager", "kube-scheduler", "kube-apiserver", "etcd")  # in the order in which to end them

_ETCD = "http://127.0.0.1:2379"
_PEER = "http://127.0.0.1:2380"


class ControlPlane:
    """The control plane. People and components have static tokens, what is tested has service accounts."""

    def __init__(
        self,
        host: Host,
        namespace: Namespace,
        feature_gates: Mapping[str, bool],
        scheduler_flags: Sequence[str] = (),
    ) -> None:
        self._scheduler_flags = tuple(scheduler_flags)
        self._host = host
        self._namespace = namespace
        self.feature_gates = dict(feature_gates)
        self.pki = Pki(host.folder / "pki")
        self.admin = host.folder / "admin.kubeconfig"

    def start(self, nodes: Sequence[str]) -> None:
        """Start etcd and the API server; `finish` waits for them and starts what talks to them."""
        self.pki.create((f"IP:{network.SERVICE_ADDRESS}", "DNS:kubernetes.default.svc", "DNS:kubernetes.default"))
        self._create_users(nodes)
        etcd = ("--data-dir", self._host.folder / "etcd", "--unsafe-no-fsync", "--log-level=warn",
                f"--listen-client-urls={_ETCD}", f"--advertise-client-urls={_ETCD}",
                f"--listen-peer-urls={_PEER}")  # fmt: skip
        self._start("etcd", etcd)
        self._start("kube-apiserver", self._apiserver_flags())

    def finish(self, timeout: float = 60) -> None:
        """Wait until the API server is ready, then starts scheduler and controller-manager."""
        self.wait_until_ready(timeout)
        self._start("kube-scheduler", (*self._client_flags("kube-scheduler"), *self._scheduler_flags))
        self._start("kube-controller-manager", (
            *self._client_flags("kube-controller-manager"), "--use-service-account-credentials",
            f"--service-account-private-key-file={self.pki.key('service-account')}",
            f"--root-ca-file={self.pki.crt('ca')}",
        ))  # fmt: skip

    def restart(self, feature_gates: Mapping[str, bool]) -> None:
        """Start the control plane but etcd anew with other feature gates; what is stored stays.

        Scheduler and controller-manager too: their watches would come back only after a pause that grows.
        """
        self.feature_gates = dict(feature_gates)
        for name in ("kube-scheduler", "kube-controller-manager"):
            self._host.processes[name].stop()
        # Asked to end, it waits for its watches to end first.
        self._host.processes["kube-apiserver"].kill()
        self._start("kube-apiserver", self._apiserver_flags())
        self.finish()

    def wait_until_ready(self, timeout: float = 60) -> None:
        check = self._host.processes["kube-apiserver"].check
        wait_until("kube-apiserver", self._is_ready, timeout, check=check)

    def kubeconfig(self, user: str) -> Path:
        return self._host.folder / f"{user}.kubeconfig"

    def write_kubeconfig(self, user: str, token: str, server: str = SERVER) -> Path:
        """Write the kubeconfig of a user (as a file name) with a bearer token; `server` may stand before it."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "test", "cluster": {"server": server, "certificate-authority": str(self.pki.crt("ca"))}}
            ],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        path = self.kubeconfig(user)
        path.write_text(json.dumps(content, indent=1))
        return path

    def _apiserver_flags(self) -> tuple[str, ...]:
        pki = self.pki
        return (
            f"--etcd-servers={_ETCD}",
            "--bind-address=0.0.0.0", "--secure-port=443", f"--advertise-address={network.SERVICE_ADDRESS}",
            f"--service-cluster-ip-range={network.SERVICE_RANGE}", "--endpoint-reconciler-type=none",
            f"--client-ca-file={pki.crt('ca')}",
            f"--tls-cert-file={pki.crt('apiserver')}", f"--tls-private-key-file={pki.key('apiserver')}",
            f"--token-auth-file={self._host.folder / 'tokens.csv'}", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki.service_account_public_key}",
            f"--service-account-signing-key-file={pki.key('service-account')}",
            # Old versions too, as a cluster may serve them: a policy must not be got round by one of them.
            "--runtime-config=resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true",
            "--kubelet-preferred-address-types=InternalIP",
            f"--kubelet-client-certificate={pki.crt('kubelet-client')}",
            f"--kubelet-client-key={pki.key('kubelet-client')}",
            *render_gates(self.feature_gates),
        )  # fmt: skip

    def _client_flags(self, name: str) -> tuple[str, ...]:
        """Give the flags of a program that talks to the API server as the user of its name."""
        kubeconfig = f"--kubeconfig={self.kubeconfig(name)}"
        return (kubeconfig, "--leader-elect=false", "--bind-address=127.0.0.1", *render_gates(self.feature_gates))

    def _create_users(self, nodes: Sequence[str]) -> None:
        users = {"admin": ("admin", "system:masters")}
        for name in ("kube-scheduler", "kube-controller-manager"):
            users[name] = (f"system:{name}", "")
        for name in nodes:
            users[name] = (f"system:node:{name}", "system:nodes")
        with (self._host.folder / "tokens.csv").open("w", newline="") as file:
            csv.writer(file).writerows((f"{name}-token", user, user, group) for name, (user, group) in users.items())
        for name in users:
            self.write_kubeconfig(name, f"{name}-token")

    def _start(self, name: str, flags: tuple[str | Path, ...]) -> None:
        self._host.processes.start(name, self._namespace.command((self._host.programs[name], *flags)))

    def _is_ready(self) -> bool:
        get = (self._host.programs["kubectl"], "--kubeconfig", self.admin, "get", "--raw", "/readyz")
        return self._namespace.run(*get, timeout=10) == "ok"


def render_gates(feature_gates: Mapping[str, bool]) -> tuple[str, ...]:
    """Render the flag `--feature-gates` as all components take it, or nothing."""
    values = (f"{name}={'true' if on else 'false'}" for name, on in sorted(feature_gates.items()))
    return (f"--feature-gates={','.join(values)}",) if feature_gates else ()
