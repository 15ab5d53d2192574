//! The report of a bench, for machines (JSON) and people.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::{Map, Value};
use tscap_document::Table;
use tscap_host::system;

use super::target::{Target, targets};

/// What a bench found.
#[derive(Serialize)]
pub struct Report {
    /// Version of the report's schema.
    v: u32,
    /// Which bench this is.
    pub bench: &'static str,
    /// Whether it was a short run.
    pub quick: bool,
    /// Where it ran.
    pub machine: Machine,
    /// What is wanted, and what came out.
    pub targets: Vec<Target>,
    #[serde(flatten)]
    fields: Map<String, Value>,
    /// Under which conditions it was measured, for people.
    #[serde(skip)]
    pub conditions: Vec<String>,
    #[serde(skip)]
    tables: Vec<Table>,
}

/// The machine, its kernel, and how busy it was.
#[derive(Debug, Serialize)]
pub struct Machine {
    /// Model and number of CPUs.
    pub hardware: String,
    /// Kernel and architecture.
    pub os: String,
    /// The CPU that was measured.
    pub cpu: usize,
    /// Load averages (1, 5, 15 min) at the start: others share these CPUs.
    pub load: String,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            hardware, os, load, ..
        } = self;
        write!(f, "{hardware}, {os}; load {load} at the start")
    }
}

/// What a part of a bench found.
pub trait Section {
    /// What is wanted of it, and what came out.
    fn targets(&self) -> Vec<Target> {
        Vec::new()
    }

    /// Its figures for people.
    fn tables(&self) -> Vec<Table>;
}

impl Report {
    /// Of a bench that begins, on `cpu`.
    pub fn new(bench: &'static str, v: u32, quick: bool, cpu: usize) -> Self {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load: Vec<_> = load.split_whitespace().take(3).collect();
        Self {
            v,
            bench,
            quick,
            machine: Machine {
                hardware: system::hardware(),
                os: system::os(),
                cpu,
                load: load.join(" "),
            },
            targets: Vec::new(),
            fields: Map::new(),
            conditions: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// A field of the JSON object.
    pub fn set(&mut self, name: &str, value: &impl Serialize) -> Result<()> {
        self.fields
            .insert(name.to_owned(), serde_json::to_value(value)?);
        Ok(())
    }

    /// The targets and the tables of a part.
    pub fn add(&mut self, section: &impl Section) {
        self.targets.extend(section.targets());
        self.tables.extend(section.tables());
    }

    /// A bench that is one part: its fields are the report's.
    pub fn add_whole<S: Section + Serialize>(&mut self, section: &S) -> Result<()> {
        let Value::Object(fields) = serde_json::to_value(section)? else {
            bail!("the report is no JSON object");
        };
        self.fields.extend(fields);
        self.add(section);
        Ok(())
    }

    /// For machines: one JSON object.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }

    /// For people: the targets first.
    pub fn text(&self) -> String {
        let Machine {
            hardware, os, load, ..
        } = &self.machine;
        let mut lines = vec![
            format!("{hardware}, {os}"),
            format!("load {load} at the start; medians (least–greatest of the rounds)"),
        ];
        lines.extend(self.conditions.iter().cloned());
        let targets = (!self.targets.is_empty()).then(|| targets(&self.targets));
        for table in targets.iter().chain(&self.tables) {
            lines.push(String::new());
            lines.extend(table.lines());
        }
        lines.join("\n") + "\n"
    }
}
