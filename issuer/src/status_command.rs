//! `issuer status`: prints the committed state for a person or a script.

use std::{error::Error as _, fmt::Write as _, time::Duration};

use daemon::channel;
use proto::issuer::v1::{
    GetStatusRequest, GetStatusResponse, HolderStatus, NamespaceStatus, Supply, issuer_client::IssuerClient,
};
use serde_json::{Value, json};
use tls::ClientTls;
use tonic::{Code, transport::Endpoint};

use crate::{Error, config::StatusArgs, grpc::LEADER_KEY};

/// Time limit to connect to one issuer, and again for its answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// Asks the leader for its status, and renders it as a table or as JSON.
///
/// # Errors
/// Returns the last issuer's error if none of them answers or points to a leader that does.
pub async fn run(args: &StatusArgs) -> Result<String, Error> {
    let tls = args.tls.client(&args.issuer)?;
    let mut last = None;
    for url in &args.issuer {
        match ask(url, tls.as_ref()).await {
            Ok(status) => return Ok(render(&status, args.json)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or(Error::Config {
        flag: "--issuer",
        value: String::new(),
        reason: "expected at least one address".to_owned(),
    }))
}

/// Asks one issuer, and then the leader that it points to.
async fn ask(url: &str, tls: Option<&ClientTls>) -> Result<GetStatusResponse, Error> {
    let status = match ask_directly(url, tls).await {
        Ok(status) => return Ok(status),
        Err(Error::Call(status)) => status,
        Err(error) => return Err(error),
    };
    let leader = status.metadata().get(LEADER_KEY).and_then(|value| value.to_str().ok());
    // A call that was made over TLS is not repeated in plaintext.
    let is_as_safe = |leader: &&str| leader.starts_with("https://") || !url.starts_with("https://");
    let leader = leader.filter(|leader| status.code() == Code::FailedPrecondition && !leader.is_empty());
    match leader.filter(is_as_safe) {
        Some(leader) => ask_directly(leader, tls).await,
        None => Err(Error::Call(status)),
    }
}

async fn ask_directly(url: &str, tls: Option<&ClientTls>) -> Result<GetStatusResponse, Error> {
    let endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(|error| Error::Config {
            flag: "--issuer",
            value: url.to_owned(),
            reason: error.to_string(),
        })?
        .connect_timeout(DEADLINE)
        .timeout(DEADLINE);
    let mut client = IssuerClient::new(channel(&endpoint, tls));
    let answer = client.get_status(GetStatusRequest {}).await;
    answer.map(tonic::Response::into_inner).map_err(|status| match status.source() {
        // Without an answer of the issuer, the status tells of the transport.
        Some(_) => Error::Unreachable {
            flag: "--issuer",
            address: url.to_owned(),
            seconds: DEADLINE.as_secs(),
            source: Some(Box::from(status)),
        },
        None => Error::Call(Box::new(status)),
    })
}

fn render(status: &GetStatusResponse, as_json: bool) -> String {
    if as_json { format!("{:#}\n", to_json(status)) } else { to_table(status) }
}

fn to_json(status: &GetStatusResponse) -> Value {
    let namespaces = status.namespaces.iter().map(|namespace| {
        json!({
            "name": namespace.name,
            "capacity": namespace.capacity,
            "high_watermark": namespace.high_watermark,
            "ceiling": namespace.ceiling,
            "allocated": namespace.allocated,
            "used": namespace.used,
            "open": namespace.open,
            "free": namespace.free,
            "leaked": namespace.leaked,
            "burned": namespace.burned,
            "in_hand": namespace.in_hand,
            "exhaustion_seconds": namespace.exhaustion_seconds,
            "reclaimed": namespace.reclaimed,
        })
    });
    let holders = holders(status).map(|holder| {
        json!({
            "id": holder.id,
            "incarnation": holder.incarnation,
            "alive": holder.alive,
            "blocks": holder.blocks,
            "supplies": holder.supplies.iter().map(supply).collect::<Vec<_>>(),
        })
    });
    let reservations = reservations(status).map(|holder| json!({ "id": holder.id, "blocks": holder.blocks }));
    json!({
        "leader": status.leader,
        "epoch": status.epoch,
        "namespaces": namespaces.collect::<Vec<_>>(),
        "holders": holders.collect::<Vec<_>>(),
        "reservations": reservations.collect::<Vec<_>>(),
    })
}

fn supply(supply: &Supply) -> Value {
    let lasts = supply.lasts_ms.map(|ms| ms / 1_000);
    json!({ "namespace": supply.namespace, "in_hand": supply.in_hand, "lasts_seconds": lasts })
}

/// Returns the holders that are processes.
fn holders(status: &GetStatusResponse) -> impl Iterator<Item = &HolderStatus> {
    status.holders.iter().filter(|holder| !holder.reserved)
}

/// Returns the holders that are open reservations. No process sends beats for them, so `alive`
/// means nothing there.
fn reservations(status: &GetStatusResponse) -> impl Iterator<Item = &HolderStatus> {
    status.holders.iter().filter(|holder| holder.reserved)
}

fn to_table(status: &GetStatusResponse) -> String {
    let mut text = format!("leader {} in epoch {}\n\n", status.leader, status.epoch);
    let head = [
        "namespace",
        "capacity",
        "left",
        "ceiling",
        "allocated",
        "used",
        "open",
        "in hand",
        "free",
        "leaked",
        "burned",
    ];
    let rows = status.namespaces.iter().map(|namespace| {
        [
            namespace.name.clone(),
            namespace.capacity.to_string(),
            left(namespace),
            namespace.ceiling.to_string(),
            namespace.allocated.to_string(),
            namespace.used.to_string(),
            namespace.open.to_string(),
            namespace.in_hand.to_string(),
            namespace.free.to_string(),
            namespace.leaked.to_string(),
            namespace.burned.to_string(),
        ]
    });
    columns(&mut text, &head.map(str::to_owned), rows);
    text.push('\n');
    let head = ["holder", "incarnation", "alive", "blocks"];
    let rows = holders(status).map(|holder| {
        let alive = if holder.alive { "yes" } else { "no" };
        [holder.id.clone(), holder.incarnation.to_string(), alive.to_owned(), holder.blocks.to_string()]
    });
    columns(&mut text, &head.map(str::to_owned), rows);
    if reservations(status).next().is_some() {
        text.push('\n');
        let rows = reservations(status).map(|holder| [holder.id.clone(), holder.blocks.to_string()]);
        columns(&mut text, &["reservation", "blocks"].map(str::to_owned), rows);
    }
    text
}

/// Returns the share of numbers that no holder has, in percent, rounded down. A namespace that
/// shows 0 % may have a few left.
fn left(namespace: &NamespaceStatus) -> String {
    let remaining = namespace.capacity.saturating_sub(namespace.high_watermark) + namespace.free;
    let percent = u128::from(remaining) * 100 / u128::from(namespace.capacity.max(1));
    format!("{percent} %")
}

/// Appends a table. The first column is aligned left, the others right.
fn columns<const N: usize>(text: &mut String, head: &[String; N], rows: impl Iterator<Item = [String; N]>) {
    let lines: Vec<_> = std::iter::once(head.clone()).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..N).map(width).collect();
    for line in &lines {
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            // Writing to a string cannot fail.
            let _ =
                if column == 0 { write!(text, "{cell:<width$}") } else { write!(text, "  {cell:>width$}") };
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_reservation_is_shown_as_one_and_not_as_a_dead_holder() {
        let holder = |id: &str, alive, reserved| HolderStatus {
            id: id.to_owned(),
            incarnation: 1,
            alive,
            blocks: 2,
            reserved,
            supplies: Vec::new(),
        };
        let holders = vec![holder("resolver-0", true, false), holder("reservation-7", false, true)];
        let status = GetStatusResponse { leader: "here".to_owned(), epoch: 1, holders, ..Default::default() };
        let json = to_json(&status);
        assert_eq!(json["holders"].as_array().map(Vec::len), Some(1), "{json}");
        assert_eq!(json["reservations"], json!([{ "id": "reservation-7", "blocks": 2 }]));
        let table = to_table(&status);
        let (holders, reservations) = table.split_once("\nreservation ").unwrap_or_else(|| panic!("{table}"));
        assert!(!holders.contains("reservation-7") && reservations.contains("reservation-7"), "{table}");
        let none = to_table(&GetStatusResponse::default());
        assert!(!none.contains("reservation"), "{none}");
    }
}
