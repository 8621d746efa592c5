use super::*;

fn refused(text: &str) -> String {
    text.parse::<Rule>().expect_err("refused").to_string()
}

#[test]
fn rules_read_as_they_are_meant() {
    for (typed, written) in [
        ("c128.output_tps>=2000", "c128.output_tps >= 2000"),
        (" tpot_p99 <12.5 ", "tpot_p99 < 12.5"),
        ("failures at most 0", "failures <= 0"),
        (
            "r0.5.accept_length at least 2.5",
            "r0.5.accept_length >= 2.5",
        ),
        (
            "e2e_tps not worse than 2 %",
            "e2e_tps_p50 not worse than 2 %",
        ),
        (
            "single.e2e_tps_p50 not worse than baseline by more than 0.5%",
            "single.e2e_tps_p50 not worse than 0.5 %",
        ),
        (
            "ttft_p95 not worse by more than 10",
            "ttft_p95 not worse than 10 %",
        ),
        (
            "output_tps not worse than 0 % within launches",
            "output_tps not worse than 0 % within launches",
        ),
    ] {
        assert_eq!(rule(typed).to_string(), written, "{typed}");
    }
}

#[test]
fn what_is_no_rule_says_why() {
    assert!(refused("tpot_p99=12").contains("is no rule"));
    assert!(refused("tpot_p99>twelve").contains("`twelve` is no number"));
    assert!(refused("tpot_p99>inf").contains("is no number"));
    assert!(refused("x8.tpot_p99>1").contains("`x8` is no load level"));
    assert!(refused("tpot>1").contains("Near it are tpot_mean, tpot_min, tpot_p50."));
    assert!(refused("outptu_tps<1").contains("output_tps"));
    assert!(refused("nonsense<1").contains("--help-metrics"));
    assert!(!refused("nonsense<1").contains("Near it"));
    assert!(refused("output_tps@C=32 >= 1000").contains("output_tps"));
    for percent in ["", "two %", "100 %", "-1 %", "2 % within a day"] {
        let error = refused(&format!("output_tps not worse than {percent}"));
        assert!(error.contains("no percentage"), "{error}");
    }
    assert!(refused("failures not worse than 2 %").contains("failures<=0"));
    assert!(refused(&format!("{}>1", "x".repeat(300))).contains("302 characters"));
}

#[test]
fn lines_are_rules_and_the_bad_one_is_named() {
    let text = "# speed\n\nsingle.e2e_tps_p50 >= 85\r\n  failures <= 0\n";
    let rules = parse_lines(text).expect("rules");
    assert_eq!(rules, [rule("single.e2e_tps_p50>=85"), rule("failures<=0")]);
    let error = parse_lines("failures <= 0\n\ntpot_p98 <= 1").expect_err("refused");
    assert!(
        error
            .to_string()
            .starts_with("Line 3: There is no metric `tpot_p98`"),
        "{error}"
    );
    assert_eq!(parse_lines("# nothing\n"), Err(LineError::Empty));
    let many = "failures <= 0\n".repeat(51);
    assert_eq!(parse_lines(&many), Err(LineError::TooMany(51)));
    for example in EXAMPLES {
        assert_eq!(rule(example).to_string(), example);
    }
}
