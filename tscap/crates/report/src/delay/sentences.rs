//! Names and sentences: accounts as equations, the certificate, how it was measured.

use tscap_base::text::numbers::{counted, grouped, ring, span};
use tscap_delay::schema::{Account, Certificate, How, Match, Measurement, MeasuringPoint};
use tscap_document::words::number;

/// What each measurement is called, no two alike.
pub(super) fn names(measurements: &[&Measurement]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for measurement in measurements {
        let method = &measurement.method;
        let name = method.label.as_deref().unwrap_or(how(method.how));
        let mut unique = name.to_owned();
        let mut number = 2;
        while names.contains(&unique) {
            unique = format!("{name} {number}");
            number += 1;
        }
        names.push(unique);
    }
    names
}

/// The method in a word or two.
pub(super) fn how(how: How) -> &'static str {
    match how {
        How::Hooks => "hooks",
        How::Mirror => "mirror",
        How::Rtt => "round trip",
        How::Reflect => "reflect",
        How::Sessions => "sessions",
    }
}

/// How it was measured.
pub(super) fn method(measurement: &Measurement) -> String {
    let method = &measurement.method;
    let how = match method.how {
        How::Hooks => "programs at both ends",
        How::Mirror => "both ends mirrored to one port",
        How::Rtt => "end to end: a request that is sent, and its reply",
        How::Reflect => "a request that is received, and its reply that is sent",
        How::Sessions => "test packets to a session-reflector on another host (RFC 8762)",
    };
    let matched_by = match method.matched_by {
        Match::Gen => "run, flow and sequence number of tscap gen",
        Match::Bridge => "the whole frame",
        Match::Route => "what a router does not change",
        Match::Nat => "what neither a router nor NAT changes",
        Match::Reply => "a request and its echo",
    };
    if method.how == How::Sessions {
        return format!("{how}; replies were waited for {}", span(method.window_ns));
    }
    format!(
        "{how}; matched by {matched_by} within {}, of {} at most ({})",
        span(method.window_ns),
        counted(method.capacity, "packet"),
        ring(method.memory_bytes)
    )
}

/// What else there was meanwhile, by its name.
pub(super) fn conditions(measurement: &Measurement) -> Vec<(&'static str, String)> {
    let method = &measurement.method;
    let none = || "none".to_owned();
    let mut conditions = vec![
        ("stamps", method.clock.clone()),
        ("CPU load", method.load.clone().unwrap_or_else(none)),
        ("parallel", method.parallel.clone().unwrap_or_else(none)),
    ];
    if let Some(file) = &method.file {
        conditions.push(("read from", file.clone()));
    }
    if let Some(correction) = &method.correction {
        let mean = number(correction.mean_ns);
        conditions.push((
            "correction",
            format!("{mean} ns, the mean of {}", correction.file),
        ));
    }
    conditions
}

/// What became of the packets: an equation for each end.
pub(super) fn account(account: &Account) -> [String; 2] {
    [
        equation(
            "entered",
            account.entered,
            account.matched,
            &[
                (account.lost_inside, "lost inside"),
                (account.pending, "pending"),
                (account.ambiguous_in, "ambiguous"),
                (account.untracked_in, "untracked"),
            ],
        ),
        equation(
            "left",
            account.left,
            account.matched,
            &[
                (account.originated, "originated"),
                (account.early, "early"),
                (account.ambiguous_out, "ambiguous"),
                (account.untracked_out, "untracked"),
            ],
        ),
    ]
}

/// Terms that are 0 are left out.
fn equation(name: &str, all: u64, matched: u64, terms: &[(u64, &str)]) -> String {
    let terms = terms.iter().filter(|(count, _)| *count > 0);
    let terms = terms.map(|(count, name)| format!(" + {} {name}", grouped(*count)));
    let terms: String = terms.collect();
    format!(
        "{} {name} = {} matched{terms}",
        grouped(all),
        grouped(matched)
    )
}

/// What the programs of a place made of the frames.
pub(super) fn spot(spot: &MeasuringPoint) -> String {
    let unrecorded = spot.unrecorded.iter();
    let unrecorded = unrecorded.map(|(name, count)| (*count, name.as_str()));
    let terms = [(spot.unkeyed, "without a key")]
        .into_iter()
        .chain(unrecorded);
    let terms = terms.filter(|(count, _)| *count > 0);
    let terms = terms.map(|(count, name)| format!(" + {} {name}", grouped(count)));
    let terms: String = terms.collect();
    format!(
        "{} ({}): {} seen = {} to the matcher{terms}",
        spot.interface,
        spot.hook,
        grouped(spot.seen),
        grouped(spot.keyed)
    )
}

/// What is known of the maximum.
pub(super) fn certificate(certificate: &Certificate) -> String {
    match certificate {
        Certificate::None { why } => format!("no certificate for the maximum: {why}"),
        Certificate::Holds {
            n,
            max_ns,
            bound_ns,
            exceeding,
            blocks,
            block_packets,
            correlation,
        } => format!(
            "at 99 % confidence at most {} of the packets are slower than {} ns, the greatest of {} \
             with its bound: the packets make {} of {}{}, whose neighbours correlate by {}; it \
             holds while load and settings stay as they were",
            percent(*exceeding),
            number(*max_ns as f64 + *bound_ns as f64),
            counted(*n, "delay"),
            counted(*blocks, "independent block"),
            counted(*block_packets, "packet"),
            match block_packets {
                0..=1 => "",
                _ => " with a block left out between two",
            },
            number(*correlation)
        ),
    }
}

/// The same without how it is known.
pub(super) fn certified_briefly(certificate: &Certificate) -> String {
    match certificate {
        Certificate::None { why } => format!("no certificate for the maximum: {why}"),
        Certificate::Holds {
            max_ns,
            bound_ns,
            exceeding,
            ..
        } => format!(
            "at 99 % confidence at most {} of the packets are slower than {} ns",
            percent(*exceeding),
            number(*max_ns as f64 + *bound_ns as f64)
        ),
    }
}

/// A share with two significant digits: "0.046 %".
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let is_small = percent > 0.0 && percent < 10.0;
    if is_small {
        let decimals = (1.0 - percent.log10().floor()).min(12.0) as usize;
        format!("{percent:.decimals$} %")
    } else {
        format!("{} %", number(percent))
    }
}
