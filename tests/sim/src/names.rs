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
        Command::Register(_) => "Enrol",
        Command::Remove { .. } => "Remove",
        Command::IssueKey { .. } => "IssueKey",
        Command::RevokeKeys { .. } => "RevokeKeys",
        Command::SetSuspended { .. } => "Suspend",
        Command::BeginEpoch => "BeginEpoch",
        Command::RenewSecret { .. } => "RenewSecret",
        Command::Heartbeat { .. } => "Beat",
        Command::RecordActivity { .. } => "Return",
        Command::OpenAccount { .. } => "OpenAccount",
        Command::Grant { .. } => "Grant",
        Command::Burn { .. } => "Burn",
        Command::Pay(_) => "Pay",
        Command::OpenJob(_) => "OpenJob",
        Command::Offer { .. } => "Offer",
        Command::AcceptOffer { .. } => "AcceptOffer",
        Command::Start { .. } => "Start",
        Command::ReportProgress(_) => "Progress",
        Command::AskQuestion(_) => "Question",
        Command::AnswerQuestion(_) => "Answer",
        Command::ReportResult(_) => "Report",
        Command::Respond { .. } => "Respond",
        Command::Approve { .. } => "Approve",
        Command::ReportStatus { .. } => "Stand",
        Command::ReportReputation { .. } => "Boast",
        Command::Decline { .. } => "Decline",
        Command::Defer { .. } => "Defer",
        Command::HandOver { .. } => "HandOver",
        Command::MarkShown { .. } => "Show",
        Command::MarkPending { .. } => "MarkPending",
        Command::MarkUnreachable { .. } => "Unreachable",
        Command::Cancel { .. } => "Cancel",
        Command::Requeue { .. } => "Requeue",
        Command::ExecuteSigned(_) => "Signed",
        Command::SubmitToMarket(_) => "Post",
        Command::AddAliases { .. } => "Name",
        Command::SendMessage(_) => "Send",
        Command::Ack { .. } => "Ack",
        Command::MarkPresented { .. } => "Present",
        Command::SetBlocked { .. } => "Block",
        Command::RetryDelivery { .. } => "PushAgain",
        Command::RecordDelivery { .. } => "PushDone",
        Command::SaveAnswer(_) => "Remember",
        Command::FireTimer(_) => "Tick",
    }
);

table!(
    /// Every signed order.
    SIGNED, signed(signed_order::SignedOrder) {
        signed_order::SignedOrder::RequestJob(_) => "signed Ask",
        signed_order::SignedOrder::Offer(_) => "signed Offer",
        signed_order::SignedOrder::Accept(_) => "signed Accept",
        signed_order::SignedOrder::Result(_) => "signed Result",
        signed_order::SignedOrder::Fail(_) => "signed Fail",
        signed_order::SignedOrder::SendMessage { .. } => "signed Write",
        signed_order::SignedOrder::UpdateProfile(_) => "signed Introduce",
        signed_order::SignedOrder::RecordOnly => "signed Nothing",
    }
);

table!(
    /// Every market order.
    POSTED, posted(market::MarketOrder) {
        market::MarketOrder::Register(_) => "posted Enrol",
        market::MarketOrder::OpenJob(_) => "posted Open",
        market::MarketOrder::ReportResult(_) => "posted Report",
        market::MarketOrder::Decline { .. } => "posted Decline",
        market::MarketOrder::Offer { .. } => "posted Offer",
        market::MarketOrder::Read { .. } => "posted Read",
        market::MarketOrder::Dispatch => "posted Dispatch",
        market::MarketOrder::RecordOnly => "posted Nothing",
    }
);

table!(
    /// Every refusal.
    REFUSALS, refusal(Refusal) {
        Refusal::NotAuthenticated => "NotAuthenticated",
        Refusal::Suspended => "Suspended",
        Refusal::IdentityMismatch => "IdentityDiffers",
        Refusal::IdTaken => "IdTaken",
        Refusal::OwnerTaken => "OwnerTaken",
        Refusal::NameConfusable => "LooksTaken",
        Refusal::NotFound => "NotYours",
        Refusal::NoSuchAgent => "NoSuchAgent",
        Refusal::NoSuchSkill => "NoSuchSkill",
        Refusal::SkillNotOffered => "SkillNotOffered",
        Refusal::BudgetTooLow { .. } => "BudgetTooLow",
        Refusal::TooFewCredits => "TooFewCredits",
        Refusal::Offline => "Offline",
        Refusal::AtCapacity => "AtCapacity",
        Refusal::AtRateLimit => "TooFast",
        Refusal::TooManyOpen => "TooManyOpen",
        Refusal::AgentBroken => "OutOfOrder",
        Refusal::GuestCannotPay => "GuestCannotPay",
        Refusal::InputRejected { .. } => "Unfit",
        Refusal::DeadlineTooSoon => "DeadlineTooSoon",
        Refusal::WrongState { .. } => "WrongState",
        Refusal::OtherAssignment { .. } => "OtherTurn",
        Refusal::RequesterCannotAnswer => "RequesterCannotAnswer",
        Refusal::TooManyReports { .. } => "TooManyReports",
        Refusal::OfferExpired => "OfferExpired",
        Refusal::OfferNotRead => "UnreadOffer",
        Refusal::TooManyOffers { .. } => "TooManyOffers",
        Refusal::OfferAbovePrevious { .. } => "OfferRaised",
        Refusal::OfferAmbiguous => "OfferUnnamed",
        Refusal::NoSuchOffer => "NoSuchOffer",
        Refusal::Ambiguous => "Ambiguous",
        Refusal::WrongParty => "WrongParty",
        Refusal::UnsupportedCurrency => "OtherCurrency",
        Refusal::SameIdOtherContent => "SameIdOtherContent",
        Refusal::NoSuchOwner { .. } => "NoSuchOwner",
        Refusal::SelfPayment => "PaysItself",
        Refusal::AmountNotPositive => "NothingToMove",
        Refusal::PaymentMismatch { .. } => "NotWhatWasPaid",
        Refusal::JobNotPaid { .. } => "JobNotPaid",
        Refusal::AlreadySettled { .. } => "AlreadySettled",
        Refusal::InboxFull => "InboxFull",
        Refusal::TooManySavedAnswers => "TooManyKept",
        Refusal::Blocked => "Blocked",
        Refusal::TooManyBlocked { .. } => "TooManyBlocked",
        Refusal::BridgeLoop { .. } => "BridgeLoop",
        Refusal::TooManyAgents { .. } => "TooManyAgents",
        Refusal::Overflow => "Overflow",
        Refusal::MemoryFull { .. } => "MemoryFull",
    }
);
