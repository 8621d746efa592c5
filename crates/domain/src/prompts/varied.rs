//! Questions made from a subject, a task and a point of view.

use super::random::mix;

const SUBJECTS: [&str; 100] = [
    "tidal power",
    "bread baking",
    "the French Revolution",
    "bee colonies",
    "suspension bridges",
    "the immune system",
    "jazz harmony",
    "plate tectonics",
    "public libraries",
    "chess openings",
    "coral reefs",
    "steam locomotives",
    "the Silk Road",
    "sleep cycles",
    "volcanic soils",
    "city trams",
    "bird migration",
    "the printing press",
    "fermented foods",
    "mountain weather",
    "glass making",
    "ocean currents",
    "the Roman aqueducts",
    "honey production",
    "solar eclipses",
    "wooden ships",
    "language change",
    "rainforest canopies",
    "railway signalling",
    "cave paintings",
    "wind turbines",
    "the human heart",
    "medieval guilds",
    "desert plants",
    "map projections",
    "paper folding",
    "vaccines",
    "lighthouses",
    "river deltas",
    "film editing",
    "the periodic table",
    "olive cultivation",
    "earthquake-proof houses",
    "tea ceremonies",
    "glaciers",
    "bicycle design",
    "the stock exchange",
    "owl hearing",
    "cathedral building",
    "soap making",
    "radio astronomy",
    "school gardens",
    "the Hanseatic League",
    "mushroom ecology",
    "elevators",
    "weaving looms",
    "memory techniques",
    "salt mines",
    "hot air balloons",
    "urban foxes",
    "clock making",
    "the water cycle",
    "folk dances",
    "antibiotics",
    "canal locks",
    "beach erosion",
    "opera voices",
    "seed banks",
    "traffic lights",
    "whale songs",
    "pottery kilns",
    "the Milky Way",
    "cheese ripening",
    "fire fighting",
    "the abacus",
    "ski jumping",
    "peat bogs",
    "insurance",
    "spider silk",
    "ferry routes",
    "stained glass",
    "grain storage",
    "parrots",
    "the metric system",
    "harbour cranes",
    "puppet theatre",
    "sand dunes",
    "dictionaries",
    "thermal springs",
    "kite flying",
    "organ pipes",
    "night markets",
    "snow avalanches",
    "cork oaks",
    "postage stamps",
    "submarine cables",
    "horse breeding",
    "street lighting",
    "wetlands",
    "violin varnish",
];

const TASKS: [&str; 30] = [
    "describe the history of",
    "explain the basic principles of",
    "list common mistakes with",
    "compare two approaches to",
    "write an introduction to",
    "give practical advice about",
    "summarise the open questions about",
    "outline a lecture on",
    "tell a short story about",
    "explain the economics of",
    "describe the main dangers of",
    "discuss the future of",
    "explain the science behind",
    "write a dialogue about",
    "plan a museum exhibit on",
    "draft a newspaper article about",
    "name the people who shaped",
    "explain the tools used for",
    "describe a typical day around",
    "argue for more research on",
    "argue for better teaching of",
    "describe the environmental side of",
    "explain the mathematics in",
    "write a quiz about",
    "describe how laws deal with",
    "explain the vocabulary of",
    "describe regional differences in",
    "analyse a famous example of",
    "explain how beginners start with",
    "review the literature on",
];

const VIEWS: [&str; 40] = [
    "for a curious child",
    "for an engineer",
    "for a historian",
    "for a busy manager",
    "for a school class",
    "for a travel guide",
    "for a medical student",
    "for a city council",
    "for a farmer",
    "for a radio programme",
    "for a sceptical reader",
    "for a debating club",
    "for a first-year student",
    "for a craftsman",
    "for a retired teacher",
    "for a journalist",
    "for a small company",
    "for a village fair",
    "for a science magazine",
    "for a night-shift worker",
    "for a book club",
    "for an apprentice",
    "for a grandparent",
    "for a software developer",
    "for a ship's crew",
    "for a photographer",
    "for an architect",
    "for a parliament committee",
    "for a chess player",
    "for a nurse",
    "for a bank clerk",
    "for a gardener",
    "for a musician",
    "for an exchange student",
    "for a lawyer",
    "for a weather service",
    "for a tour bus",
    "for a primary school",
    "for a police academy",
    "for a mountain guide",
];

/// Number of different questions before an edition number is needed.
pub const VARIED_COUNT: u64 = (SUBJECTS.len() * TASKS.len() * VIEWS.len()) as u64;

/// A question of the varied set. The subject comes first, so that prompts differ
/// from their first words on and no prefix cache can join them. A number drawn by the
/// seed stands before it: another seed would otherwise only begin at another place of
/// the same round, and meet the prompts of an earlier run. Every seed has one, so that
/// prompts are equally long under all of them.
pub(super) fn varied(seed: u64, index: u64) -> String {
    // A step that shares no factor with 120,000 = 2^6 · 3 · 5^4 visits every
    // question once before any comes again.
    const STEP: u64 = 76_543;
    let edition = index / VARIED_COUNT;
    let offset = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) % VARIED_COUNT;
    let place = ((index % VARIED_COUNT) * STEP + offset) % VARIED_COUNT;
    let pick = |list: &[&'static str], at: u64| {
        usize::try_from(at % list.len() as u64)
            .ok()
            .and_then(|at| list.get(at).copied())
            .unwrap_or("")
    };
    let subject = pick(&SUBJECTS, place);
    let task = pick(&TASKS, place / SUBJECTS.len() as u64);
    let view = pick(&VIEWS, place / (SUBJECTS.len() * TASKS.len()) as u64);
    let edition = if edition == 0 {
        String::new()
    } else {
        format!("({}) ", edition + 1)
    };
    let mark = mix(seed ^ mix(index)) % 100_000;
    format!(
        "{mark}: {edition}On {subject}: please {task} this subject in detail, {view}, with examples and a conclusion."
    )
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_varied_question_comes_twice() {
        for seed in [0, 1, u64::MAX] {
            let seen: HashSet<String> = (0..VARIED_COUNT + 10)
                .map(|index| varied(seed, index))
                .collect();
            assert_eq!(seen.len() as u64, VARIED_COUNT + 10);
        }
        assert_eq!(VARIED_COUNT, 120_000);
        assert_ne!(varied(0, 0), varied(1, 0));
    }

    #[test]
    fn another_seed_meets_hardly_any_prompt_of_the_first() {
        let of = |seed| -> HashSet<String> {
            (0..VARIED_COUNT).map(|index| varied(seed, index)).collect()
        };
        let (one, other, zero) = (of(7), of(8), of(0));
        assert!(one.intersection(&other).count() < 10);
        assert!(zero.intersection(&other).count() < 10);
    }

    #[test]
    fn prompts_are_equally_long_under_every_seed() {
        let mean = |seed| {
            let lengths = (0..VARIED_COUNT).map(|index| varied(seed, index).len());
            lengths.sum::<usize>() as f64 / VARIED_COUNT as f64
        };
        let zero = mean(0);
        for seed in [1, 7, u64::MAX] {
            let other = mean(seed);
            assert!((zero - other).abs() < 0.1, "{zero} and {other}");
        }
    }
}
