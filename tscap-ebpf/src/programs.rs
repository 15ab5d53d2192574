//! The programs at each hook, by their clocks: they read the clock and hand the frame to
//! `take` of the object. The stamp is the first thing that a program does.

/// Checks that a program has the name that [`tscap_common::hook::Hook::program`] gives it.
macro_rules! named {
    ($frame:ty, $clock:ty, $program:ident) => {
        const _: () = {
            let name = <$frame>::HOOK.program(<$clock>::DOMAIN);
            assert!($crate::programs::is_same(
                name.as_bytes(),
                stringify!($program).as_bytes()
            ));
        };
    };
}

macro_rules! at_xdp {
    ($($program:ident: $clock:ty;)*) => {$(
        #[xdp(frags)]
        pub fn $program(ctx: XdpContext) -> u32 {
            let stamp = <$clock>::read();
            take(Received::<true>(ctx.ctx), stamp);
            verdict()
        }

        named!(Received<true>, $clock, $program);
    )*};
}

/// Frames of other interfaces that share the XDP program are left alone.
#[allow(unused_macros)]
macro_rules! at_entry {
    ($($program:ident: $clock:ty;)*) => {$(
        #[fentry]
        pub fn $program(ctx: FEntryContext) -> i32 {
            let stamp = <$clock>::read();
            let mut frame = MaybeUninit::uninit();
            if let Some(frame) = Entered::own(&ctx, &mut frame) {
                take(frame, stamp);
            }
            0
        }

        named!(Entered<'_>, $clock, $program);
    )*};
}

/// At tcx the next program runs only after `TC_ACT_UNSPEC` (`TCX_NEXT`).
macro_rules! at_tc {
    ($frame:ty: $($program:ident: $clock:ty;)*) => {$(
        #[classifier]
        pub fn $program(ctx: TcContext) -> i32 {
            let stamp = <$clock>::read();
            take(<$frame>::of(&ctx), stamp);
            TC_ACT_UNSPEC
        }

        named!($frame, $clock, $program);
    )*};
}

#[allow(unused_macros)]
macro_rules! before_driver {
    ($($program:ident: $clock:ty;)*) => {$(
        #[btf_tracepoint(function = "net_dev_start_xmit")]
        pub fn $program(ctx: BtfTracePointContext) -> i32 {
            let stamp = <$clock>::read();
            with_own(&ctx, |frame| take(frame, stamp));
            0
        }

        named!(Transmitted, $clock, $program);
    )*};
}

/// Whether two names are the same.
pub const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, rest @ ..], [second, others @ ..]) = (one, other)
        && *first == *second
    {
        (one, other) = (rest, others);
    }
    one.is_empty() && other.is_empty()
}
