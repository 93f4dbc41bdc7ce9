//! Generated targets, long URLs and visitors' queries, by a seed.

use crate::rng::Rng;

/// The host that a rule denies. Another rule denies all hosts below it, and one an address.
pub(super) const DENIED: &str = "denied.example";
/// The address that a rule denies.
pub(super) const DENIED_ADDRESS: &str = "127.6.6.6";
/// The host that serves the redirects.
pub(super) const OWN: &str = "tenant.test";

/// Returns the random numbers of a case.
pub(super) fn rng(seed: u64, number: u64) -> Rng {
    Rng(seed.wrapping_mul(0x2545_F491_4F6C_DD1D).wrapping_add(number))
}

/// Texts before a host: schemes with slashes, backslashes, and characters that browsers ignore.
const BEFORE: [&str; 40] = [
    "https://",
    "http://",
    "https://",
    "//",
    "/\\",
    "\\\\",
    "\\/",
    "///",
    "/\\/",
    "https:",
    "http:",
    "https:/",
    "https:\\",
    "https:\\\\",
    "https:///",
    "http:/\\",
    "HTTPS://",
    "hTtP:",
    "ht\ttps://",
    "\u{1}https://",
    " //",
    "\t//",
    "/\t/",
    "\n/\r/",
    "https:\n//",
    "https://user@",
    "https://user:pw@",
    "https://ok.example@",
    "https://ok.example:80@",
    "https://ok.example\\@",
    "//ok.example@",
    "https://ok.example/",
    "./",
    "",
    "/",
    "?",
    "view-source:https://",
    "blob:https://",
    "javascript:location='//",
    "app://",
];

/// Spellings of the denied hosts, near misses, and ordinary hosts.
const HOSTS: [&str; 44] = [
    DENIED,
    "DENIED.Example",
    "denied.example.",
    "denied.example..",
    "denied.example...",
    "den\tied.example",
    "denied\n.example",
    "%64enied.example",
    "denied%2Eexample",
    "denied%2eexample%2e",
    "d%65n%69ed.ex%61mple",
    "ｄｅｎｉｅｄ.example",
    "denied。example",
    "denied．example｡",
    "de\u{ad}nied.example",
    "denied\u{200b}.example",
    "%EF%BD%84enied.example",
    "ⓓenied.example",
    "𝐝𝐞𝐧𝐢𝐞𝐝.example",
    "a.denied.example",
    "a.b.DENIED.example.",
    "bücher.denied.example",
    "xn--bcher-kva.denied.example",
    "xn--a.denied.example",
    "_x.denied.example",
    ".denied.example",
    "a..denied.example",
    DENIED_ADDRESS,
    "127.6.1542",
    "2131101190",
    "0x7f.6.6.6",
    "0177.06.06.06",
    "0x7f060606",
    "127.6.6.6.",
    "[::ffff:127.6.6.6]",
    "[::ffff:7f06:606]",
    "１２７.６.６.６",
    "notdenied.example",
    "denied.example.org",
    "denied-example",
    "ok.example",
    "bücher.example",
    "[::1]",
    OWN,
];

const PORTS: [&str; 8] = ["", "", "", "", ":80", ":443", ":8443", ":0443"];

const AFTER: [&str; 24] = [
    "",
    "/",
    "/p",
    "\\p",
    "/@evil.example/",
    "?q=1",
    "?q=//x",
    "#f",
    "/a b",
    "/a|b",
    "/%zz",
    "/[x]?q[]=1",
    "/../x",
    "/..\\..",
    "/%2e%2e/x",
    "/ü?ü#ü",
    "/{ORIGINAL_PATH}",
    "?to={ORIGINAL_PATH}",
    "/{DOMAIN}",
    "\t/x",
    " ",
    "\n",
    "/'\"<>",
    "\\@ok.example/",
];

/// Returns a target, and whether it is an ordinary one, which nothing may refuse.
pub(super) fn target(rng: &mut Rng) -> (String, bool) {
    if rng.one_in(5) {
        return (ordinary(rng), true);
    }
    let mut host = rng.pick(&HOSTS).to_owned();
    if rng.one_in(40) {
        host = format!("{}.{host}", "a".repeat(rng.pick(&[63, 64, 200, 255, 1_024, 1_500])));
    }
    if rng.one_in(40) {
        host = format!("{}.{host}", "ü".repeat(rng.pick(&[30, 60, 250])));
    }
    let mut text = format!("{}{host}{}{}", rng.pick(&BEFORE), rng.pick(&PORTS), rng.pick(&AFTER));
    // As a fuzzer does: a character anywhere.
    for _ in 0..rng.pick(&[0, 0, 0, 1, 1, 2]) {
        let odd = rng.pick(&[
            '/', '\\', '\t', '\n', ' ', '@', ':', '.', '。', '%', '#', '?', '[', ']', '\0', '\u{7f}', 'ß',
        ]);
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
        text.insert(rng.pick(&places), odd);
    }
    (text, false)
}

fn ordinary(rng: &mut Rng) -> String {
    let host = rng.pick(&[
        "ok.example",
        "www.ok.example",
        "bücher.example",
        "notdenied.example",
        "denied.example.org",
    ]);
    let port = rng.pick(&["", "", ":8443"]);
    let rest = rng.pick(&[
        "",
        "/",
        "/p?q=1#f",
        "/a/b.html",
        "/?to=https://denied.example/",
        "/ü/名?q=ä&r[]=1",
        "/a%20b+c?x=%2F%2Fdenied.example",
        "/{ORIGINAL_PATH}",
        "/404?from={DOMAIN}&path={ORIGINAL_PATH}",
    ]);
    match rng.below(8) {
        0 => rng.pick(&["/lost", "/lost?from=a", "lost/and/found", "?x=1", "/a/b:c"]).to_owned(),
        1 => format!("http://{host}{port}{rest}"),
        _ => format!("https://{host}{port}{rest}"),
    }
}

/// Characters of long URLs and queries: those that browsers and RFC 3986 see differently, and a few
/// of the others.
const CHARACTERS: [&str; 52] = [
    "a", "b", "z", "0", "-", ".", "_", "~", "!", "$", "&", "'", "(", ")", "*", "+", ",", ";", "=", ":", "@",
    "/", "?", "|", "^", "`", "{", "}", "\"", "<", ">", "\\", "[", "]", "%", "%2", "%zz", "%20", "%2F", "%2e",
    "%C3%BC", "%FF", "%5b", "ü", "名", "🦣", "\u{ad}", "\u{200d}", "..", "//", "&&", "a=1",
];

const WEB_HOSTS: [&str; 14] = [
    "e.example",
    "E.Example",
    "e.example.",
    "bücher.example",
    "名がドメイン.example",
    "%65.example",
    "a_b.example",
    "a!b.example",
    "faß.example",
    "127.0.0.1",
    "0x7f.1",
    "[::1]",
    "[0:0::FFFF]",
    "xn--bcher-kva.example",
];

/// Returns a long URL that may be refused when it is stored.
pub(super) fn long_url(rng: &mut Rng) -> String {
    if rng.one_in(12) {
        let before = rng.pick(&["tel:+1", "mailto:a@b.example", "mailto:a@b.example?subject=", "TEL:1"]);
        return format!("{before}{}", text(rng, 6));
    }
    let scheme = rng.pick(&["https://", "https://", "http://", "HTTPS://"]);
    let (host, port) = (rng.pick(&WEB_HOSTS), rng.pick(&["", "", "", ":8080", ":443", ":080"]));
    let mut url = format!("{scheme}{host}{port}");
    if !rng.one_in(8) {
        url = format!("{url}/{}", text(rng, 8).replace(['?', '#'], ""));
    }
    if rng.one_in(2) {
        url = format!("{url}?{}", query(rng));
    }
    if rng.one_in(4) {
        url = format!("{url}#{}", text(rng, 6));
    }
    url
}

/// Returns the query of a visitor; often an empty one.
pub(super) fn visitors_query(rng: &mut Rng) -> String {
    if rng.one_in(3) { String::new() } else { query(rng).replace('#', "") }
}

fn query(rng: &mut Rng) -> String {
    let mut pairs = Vec::new();
    for _ in 0..=rng.below(5) {
        let key = rng.pick(&[
            "a", "%61", "b", "q[]", "q%5B%5D", "q%5b]", "a b", "a+b", "a%20b", "ü", "%C3%BC", "", "%",
        ]);
        let value = text(rng, 3).replace(['&', '#'], "");
        pairs.push(match rng.below(6) {
            0 => String::new(),
            1 => key.replace(' ', "+"),
            _ => format!("{}={value}", key.replace(' ', "%20")),
        });
    }
    pairs.join("&")
}

fn text(rng: &mut Rng, most: usize) -> String {
    (0..=rng.below(most)).map(|_| rng.pick(&CHARACTERS)).collect()
}
