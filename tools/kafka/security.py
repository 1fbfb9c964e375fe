"""A broker that also listens where it encrypts and asks for a login: SASL_SSL on 127.0.0.1.

By a password, or by an OAuth token, for which it takes any that is not signed.
"""

from __future__ import annotations

import secrets
import subprocess
from typing import TYPE_CHECKING, Any

from tools.kafka.broker import Broker, free_ports

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["USER", "SecureBroker"]

USER = "drift"
#: The certificate signs itself; clients are given it as the authority that they trust. By OpenSSL,
#: which comes with Debian's Java, as Java's own keytool takes a hundred times as long.
CERTIFICATE = """\
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=127.0.0.1
-addext subjectAltName=IP:127.0.0.1 -keyout broker.pem -out ca.pem
"""
PROPERTIES = """\
listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN,OAUTHBEARER
listener.name.sasl_ssl.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
listener.name.sasl_ssl.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
unsecuredLoginStringClaim_sub="{user}";
listener.name.sasl_ssl.ssl.keystore.type=PEM
listener.name.sasl_ssl.ssl.keystore.location={store}
"""


class SecureBroker(Broker):
    """A broker with a second listener; `address` is still that of the first.

    Examples
    --------
    ::

        with SecureBroker("kafka") as broker:
            KafkaConsumer(**broker.secure_options)
    """

    @property
    def secure_options(self) -> dict[str, Any]:
        """What a client of kafka-python has to be given to be let in there."""
        return {
            "bootstrap_servers": (self.folder / "secure").read_text(encoding="ascii"),
            "security_protocol": "SASL_SSL",
            "ssl_cafile": str(self.folder / "ca.pem"),
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": USER,
            "sasl_plain_password": (self.folder / "password").read_text(encoding="ascii"),
        }

    def _configuration(self, data: Path) -> str:
        """Make a port, a password and a certificate, and put them into the configuration."""
        text = super()._configuration(data)
        address = f"127.0.0.1:{free_ports(1)[0]}"
        password, store = secrets.token_hex(16), self.folder / "broker.pem"
        (self.folder / "secure").write_text(address, encoding="ascii")
        (self.folder / "password").write_text(password, encoding="ascii")
        subprocess.run(CERTIFICATE.split(), cwd=self.folder, check=True, capture_output=True)
        with store.open("ab") as key:
            key.write((self.folder / "ca.pem").read_bytes())
        listener, protocol = f",SASL_SSL://{address}", ",SASL_SSL:SASL_SSL"
        lines = [
            line
            + listener * ("listeners=" in line)
            + protocol * line.startswith("listener.security.protocol.map=")
            for line in text.splitlines()
        ]
        return "\n".join([*lines, PROPERTIES.format(user=USER, password=password, store=store)])
