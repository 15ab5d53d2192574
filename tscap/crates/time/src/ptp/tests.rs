use super::*;

#[test]
fn an_error_names_the_call() {
    let error = PtpError::Read {
        path: "/dev/ptp0".into(),
        method: Method::Extended,
        source: io::ErrorKind::Unsupported.into(),
    };
    assert_eq!(
        error.to_string(),
        "cannot read /dev/ptp0 (PTP_SYS_OFFSET_EXTENDED)"
    );
}

#[test]
fn what_is_no_time_is_refused() {
    assert_eq!(nanoseconds(3, 7), Some(3_000_000_007));
    for (sec, nsec) in [(-1, 0), (i64::MAX, 0), (0, 1_000_000_000), (0, u32::MAX)] {
        assert_eq!(nanoseconds(sec, nsec), None, "{sec} {nsec}");
    }
}

#[test]
fn a_way_that_fails_once_is_left_once() {
    let error = |method| PtpError::Read {
        path: "/dev/ptp0".into(),
        method,
        source: io::ErrorKind::TimedOut.into(),
    };
    let works_from = |first: Method| {
        move |method: Method| {
            if (method as u8) < first as u8 {
                Err(error(method))
            } else {
                Ok(method)
            }
        }
    };
    let [best, better, plain] = [Method::Precise, Method::Extended, Method::Plain];
    for works in [best, better, plain] {
        let (found, read) = best.or_worse(works_from(works)).unwrap();
        assert_eq!((found, read), (works, works));
    }
    let (found, _) = better.or_worse(works_from(best)).unwrap();
    assert_eq!(found, better);
    for from in [best, better, plain] {
        let mut tried = 0;
        let failed = from.or_worse(|method| -> Result<(), _> {
            tried += 1;
            Err(error(method))
        });
        let last = matches!(failed, Err(PtpError::Read { method, .. }) if method == plain);
        assert!(last && tried == 3 - from as u8, "{from:?}");
    }
}

#[test]
fn the_narrowest_reading_is_taken_and_none_across_a_step() {
    let time = |ns: i64| libc::ptp_clock_time {
        sec: ns.div_euclid(1_000_000_000),
        nsec: ns.rem_euclid(1_000_000_000) as u32,
        reserved: 0,
    };
    let triples = [[900, 7, 2_100], [2_000_000_000, 8, 3], [5_000, 9, 5_800]];
    let found = narrowest(triples.into_iter().map(|triple| triple.map(time)));
    assert_eq!((found[0].nsec, found[1].nsec), (5_000, 9));
}

/// The structures are libc's; their sizes stand in the requests' numbers.
#[test]
fn the_structures_are_the_kernels() {
    assert_eq!(size_of::<libc::ptp_clock_caps>(), 80);
    assert_eq!(size_of::<libc::ptp_sys_offset>(), 16 + 51 * 16);
    assert_eq!(size_of::<libc::ptp_sys_offset_extended>(), 16 + 75 * 16);
    assert_eq!(size_of::<libc::ptp_sys_offset_precise>(), 64);
}

#[test]
fn other_files_are_refused() {
    let path = Path::new("/nonexistent/ptp0");
    let error = PtpDevice::open(path).unwrap_err();
    assert!(matches!(error, PtpError::Open { .. }), "{error}");
    for path in ["/dev/null", "/proc/self/status", "/"] {
        let error = PtpDevice::open(Path::new(path)).unwrap_err();
        assert!(matches!(error, PtpError::NotAClock { .. }), "{error}");
        assert!(!error.is_gone());
    }
}
