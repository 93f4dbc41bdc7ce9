"""Certificates of a run, made with openssl: one authority, and one leaf per purpose."""

from programs import call

CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]


class Authority:
    """An authority that exists for one run."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        call(
            "openssl",
            "req",
            "-x509",
            *CURVE,
            "-keyout",
            self.key("authority"),
            "-out",
            self.certificate("authority"),
            "-subj",
            "/CN=bed",
        )

    def certificate(self, name):
        return self.folder / f"{name}.crt"

    def key(self, name):
        return self.folder / f"{name}.key"

    def issue(self, name, *dns_names):
        """Makes a certificate for servers and clients, and returns the data of a TLS Secret."""
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        names = ",".join(f"DNS:{dns}" for dns in dns_names)
        extensions.write_text(
            "basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=serverAuth,clientAuth\n"
            f"subjectAltName={names}\n"
        )
        call("openssl", "req", *CURVE, "-keyout", self.key(name), "-out", request, "-subj", f"/CN={name}")
        call(
            "openssl",
            "x509",
            "-req",
            "-in",
            request,
            "-CA",
            self.certificate("authority"),
            "-CAkey",
            self.key("authority"),
            "-CAcreateserial",
            "-out",
            self.certificate(name),
            "-days",
            "2",
            "-extfile",
            extensions,
        )
        return {"tls.crt": self.certificate(name).read_text(), "tls.key": self.key(name).read_text()}
