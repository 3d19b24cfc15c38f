//! Names of commands and refusals, for the table of what a run has seen. Matches are exhaustive, so
//! a new one cannot be missed.

use rialto_core::command::Command;
use rialto_core::market;
use rialto_core::refusal::Refusal;
use rialto_core::signed_order;

macro_rules! table {
    ($(#[$doc:meta])* $all:ident, $name:ident($type:ty) { $($pattern:pat => $text:literal,)+ }) => {
        $(#[$doc])*
        pub const $all: &[&str] = &[$($text),+];

        pub fn $name(of: &$type) -> &'static str {
            match of {
                $($pattern => $text,)+
            }
        }
    };
}

table!(
    /// Every command, with signed orders and market orders listed separately.
    COMMANDS, command(Command) {
        Command::Enrol(_) => "Enrol",
        Command::Remove { .. } => "Remove",
        Command::IssueKey { .. } => "IssueKey",
        Command::RevokeKeys { .. } => "RevokeKeys",
        Command::Suspend { .. } => "Suspend",
        Command::BeginEpoch => "BeginEpoch",
        Command::RenewSecret { .. } => "RenewSecret",
        Command::Beat { .. } => "Beat",
        Command::Return { .. } => "Return",
        Command::OpenAccount { .. } => "OpenAccount",
        Command::Grant { .. } => "Grant",
        Command::Burn { .. } => "Burn",
        Command::Pay(_) => "Pay",
        Command::OpenJob(_) => "OpenJob",
        Command::Offer { .. } => "Offer",
        Command::AcceptOffer { .. } => "AcceptOffer",
        Command::Start { .. } => "Start",
        Command::Report(_) => "Report",
        Command::Respond { .. } => "Respond",
        Command::Approve { .. } => "Approve",
        Command::Stand { .. } => "Stand",
        Command::Boast { .. } => "Boast",
        Command::Decline { .. } => "Decline",
        Command::Defer { .. } => "Defer",
        Command::HandOver { .. } => "HandOver",
        Command::Show { .. } => "Show",
        Command::MarkPending { .. } => "MarkPending",
        Command::Unreachable { .. } => "Unreachable",
        Command::Cancel { .. } => "Cancel",
        Command::Requeue { .. } => "Requeue",
        Command::Signed(_) => "Signed",
        Command::Post(_) => "Post",
        Command::Name { .. } => "Name",
        Command::Send(_) => "Send",
        Command::Ack { .. } => "Ack",
        Command::Present { .. } => "Present",
        Command::Block { .. } => "Block",
        Command::PushAgain { .. } => "PushAgain",
        Command::PushDone { .. } => "PushDone",
        Command::Remember(_) => "Remember",
        Command::Tick(_) => "Tick",
    }
);

table!(
    /// Every signed order.
    SIGNED, signed(signed_order::Deed) {
        signed_order::Deed::Ask(_) => "signed Ask",
        signed_order::Deed::Offer(_) => "signed Offer",
        signed_order::Deed::Accept(_) => "signed Accept",
        signed_order::Deed::Result(_) => "signed Result",
        signed_order::Deed::Fail(_) => "signed Fail",
        signed_order::Deed::Write { .. } => "signed Write",
        signed_order::Deed::Introduce(_) => "signed Introduce",
        signed_order::Deed::Nothing => "signed Nothing",
    }
);

table!(
    /// Every market order.
    POSTED, posted(market::Deed) {
        market::Deed::Enrol(_) => "posted Enrol",
        market::Deed::Open(_) => "posted Open",
        market::Deed::Report(_) => "posted Report",
        market::Deed::Decline { .. } => "posted Decline",
        market::Deed::Offer { .. } => "posted Offer",
        market::Deed::Read { .. } => "posted Read",
        market::Deed::Dispatch => "posted Dispatch",
        market::Deed::Nothing => "posted Nothing",
    }
);

table!(
    /// Every refusal.
    REFUSALS, refusal(Refusal) {
        Refusal::NotAuthenticated => "NotAuthenticated",
        Refusal::Suspended => "Suspended",
        Refusal::IdentityDiffers => "IdentityDiffers",
        Refusal::IdTaken => "IdTaken",
        Refusal::OwnerTaken => "OwnerTaken",
        Refusal::LooksTaken => "LooksTaken",
        Refusal::NotYours => "NotYours",
        Refusal::NoSuchAgent => "NoSuchAgent",
        Refusal::NoSuchSkill => "NoSuchSkill",
        Refusal::SkillNotOffered => "SkillNotOffered",
        Refusal::BudgetTooLow { .. } => "BudgetTooLow",
        Refusal::TooFewCredits => "TooFewCredits",
        Refusal::Offline => "Offline",
        Refusal::AtCapacity => "AtCapacity",
        Refusal::TooFast => "TooFast",
        Refusal::TooManyOpen => "TooManyOpen",
        Refusal::OutOfOrder => "OutOfOrder",
        Refusal::GuestCannotPay => "GuestCannotPay",
        Refusal::Unfit { .. } => "Unfit",
        Refusal::DeadlineTooSoon => "DeadlineTooSoon",
        Refusal::WrongState { .. } => "WrongState",
        Refusal::OtherTurn { .. } => "OtherTurn",
        Refusal::OfferExpired => "OfferExpired",
        Refusal::UnreadOffer => "UnreadOffer",
        Refusal::TooManyOffers { .. } => "TooManyOffers",
        Refusal::OfferRaised { .. } => "OfferRaised",
        Refusal::OfferUnnamed => "OfferUnnamed",
        Refusal::NoSuchOffer => "NoSuchOffer",
        Refusal::Ambiguous => "Ambiguous",
        Refusal::WrongParty => "WrongParty",
        Refusal::OtherCurrency => "OtherCurrency",
        Refusal::SameIdOtherContent => "SameIdOtherContent",
        Refusal::NoSuchOwner { .. } => "NoSuchOwner",
        Refusal::PaysItself => "PaysItself",
        Refusal::NothingToMove => "NothingToMove",
        Refusal::NotWhatWasPaid { .. } => "NotWhatWasPaid",
        Refusal::JobNotPaid { .. } => "JobNotPaid",
        Refusal::AlreadySettled { .. } => "AlreadySettled",
        Refusal::InboxFull => "InboxFull",
        Refusal::TooManyKept => "TooManyKept",
        Refusal::Blocked => "Blocked",
        Refusal::TooManyBlocked { .. } => "TooManyBlocked",
        Refusal::BridgeLoop { .. } => "BridgeLoop",
        Refusal::TooManyAgents { .. } => "TooManyAgents",
        Refusal::Overflow => "Overflow",
        Refusal::MemoryFull { .. } => "MemoryFull",
    }
);
