//! `resolver link print`: writes a pack of QR codes to a file.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use clap::{Args, builder::PossibleValue};

use super::body::{all, with_tags};
use crate::{
    Error,
    args::ServerArgs,
    client::{Call, Query, Server, maybe},
    wrong_value,
};

/// The options of codes, by their names in a query.
const QR_OPTIONS: [&str; 5] = ["size", "margin", "errorCorrection", "color", "bgColor"];

/// The links of a pack, and its form.
#[derive(Clone, Debug, Args)]
pub struct LinkPrintArgs {
    /// Codes or custom slugs of the links, without the domain. Defaults to the links of a list.
    #[arg(conflicts_with_all = ["search", "tag", "reservation"])]
    pub codes: Vec<String>,
    /// File to write, which must not exist; - for the standard output.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Format of the pack. Defaults to svg for a FILE that ends in .zip, otherwise to pdf.
    #[arg(long, value_parser = [
        PossibleValue::new("pdf").help("A4 sheets of labels: code, short URL, and a title in Latin letters"),
        PossibleValue::new("svg").help("A ZIP archive with an SVG for each link, and a table of them"),
        PossibleValue::new("png").help("The same with PNGs"),
    ])]
    pub format: Option<String>,
    /// Columns of labels on a sheet, 1 to 6. Defaults to 3.
    #[arg(long, value_name = "COUNT")]
    pub columns: Option<u64>,
    /// Rows of labels on a sheet, 1 to 10. Defaults to 7.
    #[arg(long, value_name = "COUNT")]
    pub rows: Option<u64>,
    /// Option of the codes: size, margin, errorCorrection, color or bgColor; can be repeated.
    #[arg(long = "qr", value_name = "NAME=VALUE", value_parser = qr_option)]
    pub options: Vec<(&'static str, String)>,
    /// Print the codes of the reservation with this ID, which may have no links yet.
    #[arg(long, value_name = "ID", conflicts_with_all = ["search", "tag", "domain"])]
    pub reservation: Option<String>,
    /// Print the links that resolver link list finds with this text.
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Print only links with this tag; can be repeated to require several tags.
    #[arg(long, alias = "with-tag", value_name = "TAG")]
    pub tag: Vec<String>,
    /// Domain of the links. Defaults to all domains, and for codes to the server's default domain.
    #[arg(long)]
    pub domain: Option<String>,
    /// Order of the links, as in resolver link list.
    #[arg(long, value_name = "FIELD-ASC")]
    pub order: Option<String>,
    /// Number of the page, from 1. Required for more links than fit into a pack.
    #[arg(long, value_name = "NUMBER")]
    pub page: Option<u64>,
    #[command(flatten)]
    pub server: ServerArgs,
}

fn qr_option(text: &str) -> Result<(&'static str, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let known = QR_OPTIONS.into_iter().find(|known| *known == name);
    known.map(|name| (name, value.to_owned())).ok_or(format!("expected one of {}", QR_OPTIONS.join(", ")))
}

pub(super) async fn run(args: LinkPrintArgs) -> Result<String, Error> {
    let format = chosen_format(&args)?;
    let server = Server::new(&args.server)?;
    let reply = server.reply(Call::read("qr-codes".to_owned(), query(&args, format))).await?;
    let pack = &reply.body;
    if !pack.starts_with(b"PK") && !pack.starts_with(b"%PDF") {
        return Err(server.foreign().into());
    }
    let is_stdout = args.out == Path::new("-");
    let written = if is_stdout {
        let mut out = io::stdout();
        out.write_all(pack).and_then(|()| out.flush())
    } else {
        File::create_new(&args.out).and_then(|mut file| file.write_all(pack))
    };
    written.map_err(|error| wrong_value("--out", args.out.display(), error))?;
    Ok(if is_stdout { String::new() } else { written_text(reply.count, &args.out) })
}

/// Says how many codes a file has. Older servers do not tell their number.
fn written_text(count: Option<u64>, out: &Path) -> String {
    let codes = match count {
        None => "QR codes".to_owned(),
        Some(1) => "1 QR code".to_owned(),
        Some(count) => format!("{count} QR codes"),
    };
    format!("{codes} written to {}\n", out.display())
}

/// Returns the format of the pack, by the ending of the file unless it is given.
fn chosen_format(args: &LinkPrintArgs) -> Result<&str, Error> {
    let ending = args.out.extension().map(|ending| ending.to_ascii_lowercase());
    match (args.format.as_deref(), ending.as_deref().and_then(OsStr::to_str)) {
        (Some(format), _) => Ok(format),
        (None, Some("zip")) => Ok("svg"),
        (None, Some("svg" | "png")) => {
            let reason = "images come in an archive: end its name in .zip, or give a --format";
            Err(wrong_value("--out", args.out.display(), reason))
        }
        (None, _) => Ok("pdf"),
    }
}

fn query(args: &LinkPrintArgs, format: &str) -> Query {
    [
        maybe("format", Some(format)),
        maybe("columns", args.columns),
        maybe("rows", args.rows),
        args.options.clone(),
        maybe("reservation", args.reservation.as_ref()),
        all("shortCodes[]", &args.codes),
        maybe("searchTerm", args.search.as_ref()),
        with_tags(&args.tag, false),
        maybe("domain", args.domain.as_ref()),
        maybe("orderBy", args.order.as_ref()),
        maybe("page", args.page),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::{super::args::LinkCommand, *};
    use crate::{Command, command_line};

    fn asked(args: &str) -> Option<String> {
        asked_into("x", args)
    }

    fn asked_into(file: &str, args: &str) -> Option<String> {
        let args: Vec<&str> = ["link", "print", "--out", file].into_iter().chain(args.split(' ')).collect();
        let args = args.into_iter().filter(|arg| !arg.is_empty()).collect::<Vec<_>>();
        let Ok(Command::Link(LinkCommand::Print(args))) = command_line::parse(&args) else { return None };
        let query = query(&args, chosen_format(&args).ok()?);
        let pairs = query.into_iter().map(|(name, value)| format!("{name}={value}"));
        Some(pairs.collect::<Vec<_>>().join("&"))
    }

    #[test]
    fn the_number_of_written_codes_is_told() {
        for (count, text) in [(None, "QR codes"), (Some(1), "1 QR code"), (Some(0), "0 QR codes")] {
            assert_eq!(written_text(count, Path::new("a.pdf")), format!("{text} written to a.pdf\n"));
        }
    }

    #[test]
    fn a_pack_is_asked_for_by_codes_a_reservation_or_a_filter() {
        for (args, query) in [
            ("", "format=pdf"),
            ("a b/c --domain s.test", "format=pdf&shortCodes[]=a&shortCodes[]=b/c&domain=s.test"),
            ("--format svg --reservation 7f --page 2", "format=svg&reservation=7f&page=2"),
            (
                "--tag a --tag b --order title-ASC",
                "format=pdf&tags[]=a&tags[]=b&tagsMode=all&orderBy=title-ASC",
            ),
            (
                "--columns 2 --rows 4 --qr color=a00 --qr errorCorrection=h",
                "format=pdf&columns=2&rows=4&color=a00&errorCorrection=h",
            ),
        ] {
            assert_eq!(asked(args).as_deref(), Some(query));
        }
        for (file, args, format) in [
            ("p.zip", "", Some("format=svg")),
            ("a.pdf/P.ZIP", "", Some("format=svg")),
            ("p.zip", "--format png", Some("format=png")),
            ("p.zip", "--format pdf", Some("format=pdf")),
            ("p.pdf", "", Some("format=pdf")),
            ("zip", "", Some("format=pdf")),
            ("-", "", Some("format=pdf")),
            ("p.png", "", None),
            ("p.SVG", "", None),
            ("p.png", "--format png", Some("format=png")),
        ] {
            assert_eq!(asked_into(file, args).as_deref(), format, "{file} {args}");
        }
        for wrong in ["--format zip", "--qr logo=on", "--qr color", "a --tag b", "a --reservation 7f"] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
    }
}
