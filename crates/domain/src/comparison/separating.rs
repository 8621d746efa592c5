//! What to measure next, so that factors that changed together can be told apart.

use super::{Difference, DifferenceKind, Fingerprint, differences};

/// Changes that are named for a pair; of many, halving finds the one that matters
/// sooner.
const MOST: usize = 4;

/// Longest value that a sentence quotes, in characters.
const LONGEST: usize = 40;

/// The single changes of the first configuration that would separate what differs
/// between it and the others, in sentences. What a configuration of these already
/// separates is not named, nor is anything of a pair with another definition.
#[must_use]
pub fn separating(configurations: &[(&str, &Fingerprint)]) -> Vec<String> {
    let [(first, base), others @ ..] = configurations else {
        return Vec::new();
    };
    let found: Vec<Vec<Difference>> = others
        .iter()
        .map(|(_, print)| differences(&[(*base).clone(), (*print).clone()]).0)
        .collect();
    let mut sentences = Vec::new();
    for ((name, _), factors) in others.iter().zip(&found) {
        let several = factors.len() > 1
            && factors
                .iter()
                .all(|factor| factor.kind != DifferenceKind::Definition);
        if several {
            for sentence in of_pair(first, name, factors, &found) {
                if !sentences.contains(&sentence) {
                    sentences.push(sentence);
                }
            }
        }
    }
    sentences
}

fn of_pair(
    first: &str,
    name: &str,
    factors: &[Difference],
    found: &[Vec<Difference>],
) -> Vec<String> {
    let environment = |key: &str| {
        factors
            .iter()
            .any(|factor| factor.kind == DifferenceKind::Environment && factor.key == key)
    };
    if environment("engine") {
        return vec![format!(
            "{first} and {name} are different engines, each with settings of its own: no single change separates them. Measure each with its defaults, then change one setting at a time."
        )];
    }
    let mut sentences = Vec::new();
    if environment("source") {
        sentences.push(format!(
            "Measure {first} and {name} in the same way: their figures come from different sources."
        ));
    }
    let alone = |factor: &&Difference| found.iter().any(|other| other == &[(*factor).clone()]);
    let (known, one_sided): (Vec<&Difference>, Vec<&Difference>) = factors
        .iter()
        .filter(|factor| factor.key != "source")
        .filter(|factor| !alone(factor))
        .partition(|factor| factor.values.iter().all(Option::is_some));
    sentences.extend(known.iter().take(MOST).map(|factor| {
        format!(
            "Measure {first} with only {} changed{}.",
            factor.key,
            change(factor, name)
        )
    }));
    let more = known.len().saturating_sub(MOST);
    if more > 0 {
        sentences.push(format!(
            "{more} more differ between {first} and {name}: change half of all at once, then half of the half that matters."
        ));
    }
    if !one_sided.is_empty() {
        let keys: Vec<&str> = one_sided
            .iter()
            .take(MOST)
            .map(|factor| factor.key.as_str())
            .collect();
        let rest = one_sided.len() - keys.len();
        sentences.push(format!(
            "Of {first} and {name} only one tells {}{}: set the same in both, or take it out of both.",
            keys.join(", "),
            if rest > 0 {
                format!(" and {rest} more")
            } else {
                String::new()
            }
        ));
    }
    sentences
}

fn change(factor: &Difference, name: &str) -> String {
    match factor.values.as_slice() {
        [Some(from), Some(to)] if [from, to].iter().all(|v| v.chars().count() <= LONGEST) => {
            format!(", from {from} to {to}")
        }
        _ => format!(" to what {name} has"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(version: &str, settings: &[(&str, &str)]) -> Fingerprint {
        let own = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        Fingerprint {
            definition: own(&[("workload", "w")]),
            environment: own(&[("engine", "SGLang"), ("engine version", version)]),
            settings: own(settings),
        }
    }

    #[test]
    fn each_factor_that_is_not_yet_separated_is_named() {
        let base = print("1", &[("tp_size", "8"), ("page_size", "1")]);
        let both = print("2", &[("tp_size", "4"), ("page_size", "1")]);
        assert_eq!(
            separating(&[("a", &base), ("b", &both)]),
            [
                "Measure a with only engine version changed, from 1 to 2.",
                "Measure a with only tp_size changed, from 8 to 4."
            ]
        );
        let newer = print("2", &[("tp_size", "8"), ("page_size", "1")]);
        assert_eq!(
            separating(&[("a", &base), ("b", &both), ("c", &newer)]),
            ["Measure a with only tp_size changed, from 8 to 4."]
        );
        assert!(separating(&[("a", &base), ("c", &newer)]).is_empty());
    }

    #[test]
    fn engines_are_no_single_change() {
        let one = print("1", &[("tp_size", "8")]);
        let mut other = print("0.9", &[("tensor_parallel_size", "8")]);
        other
            .environment
            .insert("engine".to_owned(), "vLLM".to_owned());
        let sentences = separating(&[("a", &one), ("b", &other)]);
        assert_eq!(sentences.len(), 1);
        assert!(sentences[0].contains("different engines"), "{sentences:?}");
    }

    #[test]
    fn many_and_one_sided_changes_are_counted() {
        let keys = ["k1", "k2", "k3", "k4", "k5", "k6"];
        let with = |value| -> Vec<(&str, &str)> { keys.iter().map(|key| (*key, value)).collect() };
        let base = print("1", &with("0"));
        let mut settings = with("1");
        settings.push(("new", "yes"));
        let other = print("1", &settings);
        let sentences = separating(&[("a", &base), ("b", &other)]);
        assert_eq!(sentences.len(), 6, "{sentences:?}");
        assert!(sentences[4].starts_with("2 more differ"), "{sentences:?}");
        assert!(
            sentences[5].contains("only one tells new:"),
            "{sentences:?}"
        );
        let mut foreign = other;
        foreign
            .definition
            .insert("workload".to_owned(), "v".to_owned());
        assert!(separating(&[("a", &base), ("b", &foreign)]).is_empty());
    }
}
