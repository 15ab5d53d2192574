//! Prometheus's text format, version 0.0.4, as node_exporter's textfile collector reads it.

use std::fmt::{Display, Write as _};

/// What a metric is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A number that only grows.
    Counter,
    /// A number that grows and falls.
    Gauge,
}

/// A label's name and value.
pub(super) type Label<'a> = (&'static str, &'a str);

/// The samples of one capture, metric by metric.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    /// The value of the label `capture`, which every sample has.
    capture: String,
    /// The metric that samples are of.
    name: &'static str,
}

impl Page {
    pub fn of(capture: &str) -> Self {
        Self {
            text: String::new(),
            capture: capture.into(),
            name: "",
        }
    }

    /// Begins a metric, whose samples follow.
    pub fn metric(&mut self, name: &'static str, kind: Kind, help: &str) -> &mut Self {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.name = name;
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self
    }

    /// A sample of the metric begun last; its labels make it different from every other.
    pub fn sample(&mut self, labels: &[Label<'_>], value: impl Display) -> &mut Self {
        let _ = write!(
            self.text,
            "{}{{capture=\"{}\"",
            self.name,
            escaped(&self.capture)
        );
        for (name, of) in labels {
            let _ = write!(self.text, ",{name}=\"{}\"", escaped(of));
        }
        let _ = writeln!(self.text, "}} {value}");
        self
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// A label's value as it stands between quotes.
fn escaped(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_metric_with_labels_escaped() {
        let mut page = Page::of("a\"b");
        page.metric("tscap_x_total", Kind::Counter, "Frames.")
            .sample(&[("interface", "e\\t\"h\n0")], 7_u64);
        page.metric("tscap_y_seconds", Kind::Gauge, "A time.")
            .sample(&[], 1e-9);
        let expected = r#"# HELP tscap_x_total Frames.
# TYPE tscap_x_total counter
tscap_x_total{capture="a\"b",interface="e\\t\"h\n0"} 7
# HELP tscap_y_seconds A time.
# TYPE tscap_y_seconds gauge
tscap_y_seconds{capture="a\"b"} 0.000000001
"#;
        assert_eq!(page.into_text(), expected);
    }
}
