use clap::Parser as _;

use super::*;
use tscap_clock::StampSource;

fn parsed(args: &str) -> Result<Plan, String> {
    let words = ["tscap", "loss"].into_iter().chain(args.split_whitespace());
    let plan = Cli::try_parse_from(words).and_then(Cli::into_plan);
    plan.map_err(|error| error.to_string())
}

#[track_caller]
fn sweep(args: &str) -> LossPlan {
    match parsed(args) {
        Ok(Plan::Loss(plan)) => *plan,
        other => panic!("{args}: {other:?}"),
    }
}

#[test]
fn without_options_there_is_a_short_sweep() {
    let plan = sweep("");
    assert_eq!(plan.grid, Grid::usual());
    assert_eq!((plan.cpu, plan.folder), (None, None));
    assert_eq!(plan.receive_cpu, ReceiveCpu::Senders);
    assert!(!plan.output.json && plan.output.report.is_none() && plan.file_rate.is_none());
    assert_eq!(sweep("--quick").grid, Grid::quick());
    assert_eq!(sweep("--paper").grid, Grid::paper());
}

/// His sender was another machine, and his subject dumpcap.
#[test]
fn the_papers_sweep_receives_apart_with_dumpcap_beside() {
    let plan = sweep("--paper");
    assert_eq!(plan.receive_cpu, ReceiveCpu::Apart);
    assert_eq!(plan.grid.peers, [Tool::Dumpcap]);
    assert!(plan.optional_peers && !sweep("").optional_peers);
    let plan = sweep("--paper --receive-cpu 1 --peer netsniff-ng,xdpdump");
    assert_eq!(plan.receive_cpu, ReceiveCpu::Cpu(1));
    assert_eq!(plan.grid.peers, [Tool::NetsniffNg, Tool::Xdpdump]);
    assert!(!plan.optional_peers);
}

#[test]
fn every_list_reaches_the_grid() {
    let plan = sweep(
        "--size 64,128,256..1500/622 --flat-out --gap 12,100 --rate 500k,2Mpps --line-rate 10G \
         --snaplen 96,128,256,whole --ring-size 1M,16M --clock ktime,tai --duration 2 \
         --peer tcpdump,dumpcap --receive-cpu 1 --cpu 0 --folder /tmp --json --report a.html",
    );
    let grid = plan.grid;
    assert_eq!(grid.sizes, [64, 128, 256, 878, 1500]);
    assert_eq!(grid.paces.len(), 5);
    assert_eq!(grid.paces[0], Pace::FlatOut);
    let line = LineRate(10_000_000_000);
    assert_eq!(grid.paces[1], Pace::Gap { gap: 12, line });
    assert_eq!(grid.paces[4].rate(64), 2e6);
    assert_eq!(grid.snaplens, [96, 128, 256, 0]);
    assert_eq!(grid.rings, [1 << 20, 16 << 20]);
    assert_eq!(grid.clocks, [StampSource::Ktime, StampSource::Tai]);
    assert_eq!(grid.peers, [Tool::Tcpdump, Tool::Dumpcap]);
    assert_eq!(grid.duration, Duration::from_secs(2));
    assert_eq!((plan.receive_cpu, plan.cpu), (ReceiveCpu::Cpu(1), Some(0)));
    assert_eq!(plan.folder, Some("/tmp".into()));
    assert!(plan.output.json && plan.output.report == Some("a.html".into()));
}

#[test]
fn an_option_changes_one_thing_of_a_sweep() {
    let grid = sweep("--quick --ring-size 128K").grid;
    assert_eq!(
        grid,
        Grid {
            rings: vec![128 << 10],
            ..Grid::quick()
        }
    );
    let grid = sweep("--paper --gap 1000").grid;
    assert_eq!(grid.sizes, Grid::paper().sizes);
    assert_eq!(grid.paces.len(), 1);
}

#[track_caller]
fn prediction(args: &str) -> PredictionPlan {
    match parsed(args) {
        Ok(Plan::Prediction(plan)) => *plan,
        other => panic!("{args}: {other:?}"),
    }
}

#[test]
fn a_plan_is_about_one_load() {
    let load = |plan: &PredictionPlan| match &plan.asked {
        PredictionScope::Load(load) => *load,
        other => panic!("{other:?}"),
    };
    let plan = prediction("--plan --rate 2Mpps --size 512 --for 10s");
    let asked = load(&plan);
    assert_eq!((asked.size, asked.lasting), (512, Duration::from_secs(10)));
    assert_eq!(Pace::Rate(asked.rate).rate(512), 2e6);
    assert_eq!((asked.snaplen, asked.ring), (0, 64 << 20));
    assert_eq!(plan.clock, StampSource::Ktime);
    assert_eq!(plan.disk_time, Duration::from_secs(10));
    let plan = prediction(
        "--plan --rate 1Gbit --size 1500 --for 1h --snaplen 96 --ring-size 1M --clock tai --from \
         run.json --json --folder /data --duration 30 --io direct",
    );
    let asked = load(&plan);
    assert_eq!((asked.snaplen, asked.ring), (96, 1 << 20));
    assert_eq!(plan.clock, StampSource::Tai);
    assert_eq!(plan.disk_time, Duration::from_secs(30));
    assert_eq!(plan.io, Io::Direct);
    assert_eq!(plan.folder, Some("/data".into()));
    assert!(plan.json && plan.from == Some("run.json".into()));
}

#[test]
fn without_a_rate_a_plan_is_about_the_limits() {
    let limits = |args: &str| prediction(args).asked;
    let usual = PredictionScope::Limits {
        sizes: vec![64, 256, 512, 1024, 1500],
        snaplens: vec![0],
        port: None,
    };
    assert_eq!(limits("--plan"), usual);
    let asked = limits("--plan --port 100G --size 64,1500 --snaplen 96,whole");
    let given = PredictionScope::Limits {
        sizes: vec![64, 1500],
        snaplens: vec![96, 0],
        port: Some(LineRate(100_000_000_000)),
    };
    assert_eq!(asked, given);
}

#[test]
fn a_file_may_be_slow() {
    assert_eq!(sweep("--file-rate 40M").file_rate, Some(40_000_000));
    let plan =
        prediction("--plan --rate 1M --size 64 --for 1s --file-rate 100MB/s --from run.json");
    assert_eq!(plan.file_rate, Some(100_000_000));
    // Of a plan any will do: nothing is written so slowly.
    assert!(parsed("--plan --rate 1M --size 64 --for 1s --file-rate 1").is_ok());
    assert!(parsed("--file-rate 104k --ring-size 128K").is_err());
    assert!(parsed("--file-rate 105k --ring-size 128K").is_ok());
}

#[test]
fn bad_arguments_are_named() {
    for (args, named) in [
        (
            "--size 9000",
            "frames of 9000 bytes can't be sent: they have 64 to 1514",
        ),
        ("--size 63", "frames of 63 bytes"),
        ("--size 64..1500/0", "goes nowhere"),
        ("--size 1500..64/8", "goes nowhere"),
        ("--size few", "sizes are numbers"),
        ("--size 64,64", "--size has a value twice"),
        ("--snaplen all", "a number of bytes, or whole"),
        ("--ring-size 3M", "power of two"),
        ("--rate 0", "no frame is ever sent"),
        ("--rate 2000000000", "no pace for frames"),
        ("--gap -1", "'-1'"),
        ("--gap many", "--gap"),
        ("--line-rate fast", "--line-rate"),
        ("--peer wireshark", "wireshark"),
        ("--clock sundial", "sundial"),
        ("--duration 1ms", "--duration is 20ms to 60s"),
        ("--duration 61", "--duration is 20ms to 60s"),
        ("--quick --paper", "--paper"),
        ("--file-rate 0", "bytes a second, such as 200M"),
        ("--file-rate 40M --peer tcpdump", "--peer"),
        (
            "--file-rate 1M --ring-size 1M,64M",
            "a file that takes 1.0 MB/s empties a ring of 64 MiB in more than 10 s",
        ),
        ("--plan --rate 1M --size 64", "--for"),
        ("--plan --rate 1M --for 1s", "needs a --size"),
        ("--plan --ring-size 1M", "--ring-size is for a load"),
        ("--plan --duration 10", "give --folder"),
        (
            "--plan --folder /data --duration 10 --file-rate 1G",
            "not --file-rate",
        ),
        ("--plan --folder /data --duration 1ms", "is 100ms to 600s"),
        ("--plan --io direct", "--folder"),
        ("--folder /data --io direct", "--plan"),
        ("--plan --port 10G --rate 1M --size 64 --for 1s", "--port"),
        ("--plan --port fast", "--port"),
        ("--port 10G", "--plan"),
        ("--plan --for 10s", "--rate"),
        (
            "--plan --rate 1M,2M --size 64 --for 1s",
            "give --rate one value",
        ),
        (
            "--plan --rate 1M --size 64,65 --for 1s",
            "give --size one value",
        ),
        ("--plan --rate 1M --size 64 --for 1s --paper", "--paper"),
        (
            "--plan --rate 1M --size 64 --for 1s --peer tcpdump",
            "--peer",
        ),
        (
            "--plan --rate 1M --size 64 --for 1s --report a.html",
            "--report",
        ),
        ("--plan --rate 1M --size 9000 --for 1s", "9000 bytes"),
        (
            "--plan --rate 2G --size 64 --for 1s --from x",
            "no pace for frames of 64 bytes",
        ),
        ("--for 10s", "--plan"),
        ("--from a.json", "--plan"),
    ] {
        let error = parsed(args).unwrap_err();
        assert!(error.contains(named), "{args}: {error}");
    }
    let sizes = "64-1514/1";
    let rates: Vec<_> = (1..=100).map(|rate| rate.to_string()).collect();
    let error = parsed(&format!("--size {sizes} --rate {}", rates.join(","))).unwrap_err();
    assert!(error.contains("points are more than 100,000"), "{error}");
}
