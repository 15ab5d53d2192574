//! The report for people.

use crate::common::table::{absent, heading, machine, row, show, text};
use crate::converter::ConverterReport;
use crate::offset::OffsetReport;
use crate::program::ProgramReport;
use crate::report::{Ratio, Report};
use crate::rings::RingsReport;

/// The whole report, the ratios first.
pub fn render(report: &Report) -> String {
    let mut lines = machine(&report.header.machine);
    if !report.ratios.is_empty() {
        lines.extend(ratios(&report.ratios));
    }
    lines.extend(report.converter.iter().flat_map(converter));
    let cpu = report.header.machine.cpu;
    lines.extend(report.program.iter().flat_map(|p| program(p, cpu)));
    lines.extend(report.offset.iter().flat_map(offset));
    lines.extend(report.rings.iter().flat_map(rings));
    text(&lines)
}

fn verdict(figure: f64, target: Option<f64>) -> String {
    match target {
        None => String::new(),
        Some(target) if figure <= target => format!("target {target}: met"),
        Some(target) => format!("target {target}: MISSED"),
    }
}

fn ratios(ratios: &[Ratio]) -> Vec<String> {
    let title = "ratios of what one frame costs in the XDP program".into();
    let mut lines = heading(title, "", &["with harness", "without"]).to_vec();
    lines.extend(ratios.iter().map(|ratio| {
        let figures = [show(&ratio.ratio, 2), show(&ratio.net, 2)];
        let verdict = verdict(ratio.ratio.median, ratio.target);
        format!("{}  {verdict}", row(&ratio.name, &figures))
    }));
    lines
}

fn converter(report: &ConverterReport) -> Vec<String> {
    let title = format!(
        "converter, ring of {} MiB filled beforehand; rounds: {}",
        report.ring_bytes >> 20,
        report.rounds
    );
    let mut lines = heading(title, "", &["CPU ns a frame"]).to_vec();
    lines.extend(report.cells.iter().map(|cell| {
        let verdict = verdict(cell.ns.median, cell.target_ns);
        format!("{}  {verdict}", row(&cell.name(), &[show(&cell.ns, 1)]))
    }));
    let memory = row(
        "64 B, a stamp put into each block",
        &[show(&report.memory_ns, 1)],
    );
    lines.push(memory);
    let more = &report.tsc_more_ns;
    let verdict = verdict(more.median, Some(report.tsc_target_ns));
    let name = "64 B, no write, tsc less ktime";
    lines.push(format!("{}  {verdict}", row(name, &[show(more, 1)])));
    lines.extend(absent(&report.absent));
    lines
}

fn program(report: &ProgramReport, cpu: usize) -> Vec<String> {
    let title = format!(
        "XDP programs, ns a frame, BPF_PROG_TEST_RUN on CPU {cpu}; rounds: {}",
        report.rounds
    );
    let columns = ["harness", "no stamp", "ktime", "tai", "perf_output", "tsc"];
    let mut lines = heading(title, "", &columns).to_vec();
    for cell in &report.cells {
        let costs = [&cell.no_stamp, &cell.ktime, &cell.tai, &cell.perf_output];
        let costs: Vec<_> = costs.into_iter().chain(&cell.tsc).collect();
        let with: Vec<_> = costs.iter().map(|cost| show(&cost.ns, 0)).collect();
        let without: Vec<_> = costs.iter().map(|cost| show(&cost.net_ns, 0)).collect();
        let harness = [show(&cell.harness_ns, 0)];
        lines.push(row(&cell.name(), &[&harness[..], &with].concat()));
        let harness = [String::new()];
        let name = format!("{}, less the harness", cell.name());
        lines.push(row(&name, &[&harness[..], &without].concat()));
    }
    lines
}

fn offset(report: &OffsetReport) -> Vec<String> {
    let title = format!(
        "offset of each CPU's TSC event to the TSC, bracket in ns; rounds: {}",
        report.rounds
    );
    let columns = ["CPU's own leg", "common leg", "whole"];
    let mut lines = heading(title, "", &columns).to_vec();
    lines.extend(report.cells.iter().map(|cell| {
        let legs = [&cell.cpu_ns, &cell.common_ns, &cell.whole_ns];
        let own = verdict(cell.cpu_ns.min, Some(cell.cpu_target_ns));
        let whole = verdict(cell.whole_ns.min, Some(cell.whole_target_ns));
        let row = row(&format!("CPU {}", cell.cpu), &legs.map(|leg| show(leg, 0)));
        format!("{row}  own leg {own}, whole {whole}")
    }));
    lines.extend(absent(&report.absent));
    lines
}

fn rings(report: &RingsReport) -> Vec<String> {
    let title = format!(
        "live frames flat out over veth, generator and program on CPU {}, converter on CPU {}; \
         rounds: {}",
        report.generator_cpu, report.converter_cpu, report.rounds
    );
    let mut lines = heading(title, "", &["ring, MiB", "Mpps", "lost, %"]).to_vec();
    lines.extend(report.cells.iter().map(|cell| {
        let figures = [
            (cell.ring_bytes >> 20).to_string(),
            show(&cell.mpps, 2),
            show(&cell.loss.map(|loss| loss * 100.0), 2),
        ];
        row(&cell.name(), &figures)
    }));
    lines.extend(absent(&report.absent));
    lines
}
