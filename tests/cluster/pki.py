"""Keys and certificates of a cluster, made with openssl. P-256 throughout: it costs milliseconds, RSA seconds."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_DAYS = "7"


@dataclass(frozen=True, slots=True)
class Pki:
    """A folder with `ca`, `apiserver` and `kubelet-client` (`.crt`, `.key`) and `service-account` (`.key`, `.pub`)."""

    folder: Path

    def crt(self, name: str) -> Path:
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        return self.folder / f"{name}.key"

    @property
    def service_account_public_key(self) -> Path:
        return self.folder / "service-account.pub"

    def create(self, apiserver_names: tuple[str, ...]) -> None:
        """Make everything. `apiserver_names` are the subject's alternative names, as `IP:…` and `DNS:…`."""
        self.folder.mkdir(parents=True)
        self._create_key("ca")
        _openssl("req", "-x509", "-key", self.key("ca"), "-subj", "/CN=cluster-ca", "-days", _DAYS,
                 "-out", self.crt("ca"))  # fmt: skip
        self._create_certificate("apiserver", "/CN=kube-apiserver", apiserver_names)
        self._create_certificate("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client", ())
        self._create_key("service-account")
        _openssl("pkey", "-in", self.key("service-account"), "-pubout", "-out", self.service_account_public_key)

    def _create_key(self, name: str) -> None:
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.key(name))

    def _create_certificate(self, name: str, subject: str, names: tuple[str, ...]) -> None:
        self._create_key(name)
        request = self.folder / f"{name}.csr"
        extensions = ("-addext", f"subjectAltName={','.join(names)}") if names else ()
        _openssl("req", "-new", "-key", self.key(name), "-subj", subject, *extensions, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.crt("ca"), "-CAkey", self.key("ca"), "-CAcreateserial",
                 "-copy_extensions", "copy", "-days", _DAYS, "-out", self.crt(name))  # fmt: skip


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(("openssl", *arguments), check=True, capture_output=True, timeout=30)
