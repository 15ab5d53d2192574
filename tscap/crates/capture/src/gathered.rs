//! What attaching to many interfaces has to say: what it says of each is said once.

use super::event::{Event, Reporter, Severity};
use tscap_base::failure::Failure;
use tscap_base::text::numbers::grouped;

/// So many of the interfaces are named.
const MOST_NAMES: usize = 3;

/// Notices of interfaces, until they are told.
#[derive(Debug, Default)]
pub(super) struct Gathered(Vec<Notice>);

#[derive(Debug)]
struct Notice {
    severity: Severity,
    /// What the network namespace is called, unless it is this process's own.
    label: Option<String>,
    /// The same for all of them.
    key: String,
    names: Vec<String>,
    about: About,
    /// As the first one has it.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// The capture as a whole.
    All,
    Interface,
    /// An interface that is not captured on.
    LeftOut,
}

impl Gathered {
    /// Takes what is said while the interface is attached to.
    pub fn add_event(&mut self, (name, label): (&str, Option<&str>), event: Event) {
        let Event::Notice(severity, text) = event else {
            return;
        };
        let prefix = match label {
            Some(label) => format!("{label}: {name}: "),
            None => format!("{name}: "),
        };
        match text.strip_prefix(&prefix) {
            Some(rest) => self.add(severity, (name, label), About::Interface, rest),
            None => self.add(severity, (name, label), About::All, &text),
        }
    }

    /// The interface can't be captured on.
    pub fn left_out(&mut self, of: (&str, Option<&str>), failure: &Failure) {
        self.add(Severity::Warning, of, About::LeftOut, &failure.to_string());
    }

    fn add(
        &mut self,
        severity: Severity,
        (name, label): (&str, Option<&str>),
        about: About,
        text: &str,
    ) {
        let key = without(text, name);
        let same = self.0.iter_mut().find(|it| {
            (it.severity, it.about, it.label.as_deref()) == (severity, about, label)
                && it.key == key
        });
        match same {
            Some(same) => same.names.push(name.to_owned()),
            None => self.0.push(Notice {
                severity,
                label: label.map(str::to_owned),
                key,
                names: vec![name.to_owned()],
                about,
                text: text.to_owned(),
            }),
        }
    }

    /// Tells all of it, in the order in which it was said first.
    pub fn tell(self, reporter: &mut Reporter<'_>) {
        for notice in self.0 {
            reporter.say(notice.severity, &notice.line());
        }
    }
}

impl Notice {
    fn line(&self) -> String {
        let names = match self.names.as_slice() {
            [name] => name.clone(),
            few if few.len() <= MOST_NAMES => few.join(", "),
            names => format!(
                "{} interfaces ({}, …)",
                grouped(names.len() as u64),
                names[..MOST_NAMES].join(", ")
            ),
        };
        let text = &self.text;
        match (self.about, &self.label) {
            (About::All, _) => text.clone(),
            (About::Interface, None) => format!("{names}: {text}"),
            (About::Interface, Some(label)) => format!("{label}: {names}: {text}"),
            (About::LeftOut, label) => {
                let of = label.as_ref().map(|label| format!(" in {label}"));
                let are = if self.names.len() == 1 { "is" } else { "are" };
                format!("{names}{} {are} left out: {text}", of.unwrap_or_default())
            }
        }
    }
}

/// The text with each word that is `name` left out.
fn without(text: &str, name: &str) -> String {
    let is_name = |word: &&str| word.trim_matches([',', ':', ';', '(', ')']) != name;
    text.split(' ')
        .filter(is_name)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(gathered: Gathered) -> Vec<String> {
        let mut lines = Vec::new();
        gathered.tell(&mut Reporter::new(&mut |event| {
            lines.push(event.to_string())
        }));
        lines
    }

    fn warning(text: String) -> Event {
        Event::Notice(Severity::Warning, text)
    }

    #[test]
    fn what_is_said_of_each_interface_is_one_line() {
        let mut gathered = Gathered::default();
        for number in 0..100 {
            let name = format!("v{number}");
            gathered.add_event(
                (&name, None),
                warning(format!("{name}: tags may be missing")),
            );
            if number < 2 {
                let text = format!("{name}: no native XDP on {name}, at all");
                gathered.add_event((&name, None), warning(text));
            }
        }
        gathered.add_event(
            ("v7", None),
            Event::Notice(Severity::Note, "v7: other".into()),
        );
        gathered.add_event(("v8", None), warning("a filter".into()));
        assert_eq!(
            lines(gathered),
            [
                "warning: 100 interfaces (v0, v1, v2, …): tags may be missing",
                "warning: v0, v1: no native XDP on v0, at all",
                "note: v7: other",
                "warning: a filter",
            ]
        );
    }

    #[test]
    fn those_of_other_namespaces_are_told_apart() {
        let mut gathered = Gathered::default();
        for label in ["blue", "red"] {
            for name in ["a", "b"] {
                let text = format!("{label}: {name}: tags may be missing");
                gathered.add_event((name, Some(label)), warning(text));
            }
        }
        for name in ["a", "b"] {
            let failure = Failure::new(format!("cannot attach to {name} at tcx ingress"));
            gathered.left_out((name, Some("red")), &failure);
        }
        gathered.left_out(("c", None), &Failure::new("it is gone"));
        assert_eq!(
            lines(gathered),
            [
                "warning: blue: a, b: tags may be missing",
                "warning: red: a, b: tags may be missing",
                "warning: a, b in red are left out: cannot attach to a at tcx ingress",
                "warning: c is left out: it is gone",
            ]
        );
    }
}
