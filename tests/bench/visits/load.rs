//! Made-up visits, as they would be recorded.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use codes::LinkId;
use geoip::GeoIp;
use ingest::{
    Options,
    batch::{BatchMaker, Context},
    enrich::Enricher,
    known_texts::KnownTexts,
};
use links::DomainId;
use visit_store::{Batch, Producer};
use visits::{AddressMode, AddressSecret, Day, DaySecret, Event, Outcome, TextKey, Thread};

/// User agents of made-up visits; one in nine is a bot.
const AGENTS: [&str; 9] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
    "Mozilla/5.0 (iPad; CPU OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/27.0 Chrome/125.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
];
const REFERRERS: [&str; 6] = [
    "",
    "",
    "https://www.google.com/",
    "https://t.co/",
    "https://news.example.com/a/b",
    "https://www.bing.com/",
];
const LANGUAGES: [&str; 4] = ["de-DE,de;q=0.9", "en-US,en;q=0.9", "zh-CN", "fr"];

/// A source of made-up visits: one seed makes the same ones again.
pub(crate) struct Load {
    state: u64,
    enricher: Enricher,
    known: KnownTexts,
    texts: TextKey,
    /// The tags that visits of a link count for.
    pub(crate) tags: HashMap<LinkId, Vec<i64>>,
}

impl Load {
    /// Creates a source.
    pub(crate) fn new(seed: u64) -> Self {
        let options = Options { addresses: AddressMode::Cut, keep_days: 10_000 };
        Self {
            state: seed | 1,
            enricher: Enricher::new(options, GeoIp::default(), AddressSecret::new([1; 16])),
            known: KnownTexts::default(),
            texts: TextKey::new([2; 16]),
            tags: HashMap::new(),
        }
    }

    /// Returns a number below `end` (xorshift64*).
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) % end
    }

    /// Makes a batch of visits at these times, in microseconds, each of a link that `link` chooses.
    pub(crate) fn batch(
        &mut self,
        producer: &Producer,
        times: &[i64],
        mut link: impl FnMut(&mut Self) -> LinkId,
    ) -> Batch {
        let secrets: HashMap<Day, Option<DaySecret>> =
            times.iter().map(|at| (Day::of(*at), Some(DaySecret::new([3; 16])))).collect();
        let today = times.iter().map(|at| Day::of(*at)).max().unwrap_or(Day::from_stored(0));
        let mut events = Vec::new();
        for at in times {
            let place = |all: usize, number: u64| usize::try_from(number).unwrap_or(0) % all;
            let (agent, referrer, language, client) = (
                AGENTS[place(AGENTS.len(), self.below(9))],
                REFERRERS[place(REFERRERS.len(), self.below(6))],
                LANGUAGES[place(LANGUAGES.len(), self.below(4))],
                u32::try_from(self.below(1 << 32)).unwrap_or(0),
            );
            events.push(Event {
                at: *at,
                outcome: Outcome::Redirected,
                link: Some(link(self)),
                domain: DomainId::DEFAULT,
                rule: 0,
                client: IpAddr::V4(Ipv4Addr::from(client)),
                country: None,
                is_opted_out: false,
                user_agent: agent.as_bytes(),
                referrer: referrer.as_bytes(),
                languages: language.as_bytes(),
                request: b"",
                target: b"",
            });
        }
        let cuts = HashMap::new();
        let mut maker = BatchMaker::new(Context {
            slot: producer.slot,
            texts: &self.texts,
            secrets: &secrets,
            cuts: &cuts,
            tags: &self.tags,
            enricher: &mut self.enricher,
            known: &mut self.known,
            announcer: None,
            today,
            now: Duration::ZERO,
        });
        events.iter().for_each(|event| maker.add(event, Thread::of(0)));
        let batch = maker.finish(producer.position, producer.position + 1);
        self.known.stored(&batch.texts);
        batch
    }
}
