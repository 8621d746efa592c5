//! Parts that pages share.

pub mod badges;
pub mod chart;
pub mod comparison;
pub mod copy;
pub mod dialog;
pub mod effective;
pub mod experiment_badges;
pub mod feedback;
pub mod figures;
pub mod gates;
pub mod icon;
pub mod import_drop;
pub mod launches;
pub mod layout;
pub mod missing;
pub mod pick_form;
pub mod table;
pub mod theme;
pub mod time;
pub mod who;

pub use badges::{
    Badge, CautionBadge, CautionBadges, CautionList, ClassBadge, EngineName, EstablishedBadge,
    FindingBadge, FlagNote, LaunchBadge, OutcomeBadge, SourceBadge, StampBadge, StateBadge, Tone,
    VerdictBadge,
};
pub use chart::{Chart, Charts};
pub use copy::CopyButton;
pub use dialog::{CloseButton, ConfirmDialog, Dialog, DialogButton};
pub use effective::{EffectiveTable, InertBadges};
pub use experiment_badges::{EntryBadge, ExperimentBadge, StandingBadge, TrialBadge};
pub use feedback::{ChartSkeleton, EmptyState, ErrorBanner, ErrorNote, Skeleton};
pub use figures::{EstimateCell, Figure, OptionalFigure, PeakCell};
pub use gates::GateSection;
pub use icon::{Glyph, Icon};
pub use import_drop::ImportDrop;
pub use launches::LaunchTable;
pub use missing::MissingPage;
pub use pick_form::{PickBar, PickForm};
pub use table::TableBox;
pub use time::{ClockTime, RelativeTime};
pub use who::{OperatorNote, Who};
