//! Which packets were left as they were.

use serde::Serialize;

use tscap_clock::RealNs;

/// Packets in a row that were left as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Span {
    /// Time of the first one.
    pub from: RealNs,
    /// Time of the last one.
    pub until: RealNs,
    pub packets: u64,
}

#[derive(Debug, Default)]
pub(super) struct Unconverted {
    pub packets: u64,
    pub spans: Vec<Span>,
    is_in_span: bool,
}

/// More spans than anybody reads.
const MOST: usize = 100;

impl Unconverted {
    /// A packet was left.
    pub fn add(&mut self, time: RealNs) {
        self.packets += 1;
        if !self.is_in_span {
            if self.spans.len() == MOST {
                return;
            }
            self.is_in_span = true;
            self.spans.push(Span {
                from: time,
                until: time,
                packets: 0,
            });
        }
        if let Some(span) = self.spans.last_mut() {
            span.until = time;
            span.packets += 1;
        }
    }

    /// A packet was not.
    pub fn end_span(&mut self) {
        self.is_in_span = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_in_a_row_make_a_span() {
        let mut left = Unconverted::default();
        left.add(RealNs(3));
        left.add(RealNs(5));
        left.end_span();
        left.add(RealNs(9));
        let span = |from, until, packets| Span {
            from: RealNs(from),
            until: RealNs(until),
            packets,
        };
        assert_eq!(left.spans, [span(3, 5, 2), span(9, 9, 1)]);
        for time in 0..1000 {
            left.end_span();
            left.add(RealNs(time));
        }
        assert_eq!((left.packets, left.spans.len()), (1003, MOST));
        left.add(RealNs(2000));
        assert_eq!(left.spans[MOST - 1].packets, 1);
    }
}
