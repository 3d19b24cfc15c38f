//! Names of commands and refusals, for the table of what a run has seen. Matches are exhaustive, so
//! a new one cannot be missed.

use rialto_core::command::Command;
use rialto_core::refusal::Refusal;

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
    /// Every command.
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
        Command::RequestJob(_) => "Ask",
        Command::Offer { .. } => "Offer",
        Command::AcceptOffer(_) => "AcceptOffer",
        Command::Start { .. } => "Start",
        Command::ReportProgress(_) => "Progress",
        Command::AskQuestion(_) => "Question",
        Command::AnswerQuestion(_) => "Answer",
        Command::AskToSignIn(_) => "SignIn",
        Command::SendToWorker(_) => "SendToWorker",
        Command::SetJobWebhook(_) => "SetWebhook",
        Command::RemoveJobWebhook(_) => "RemoveWebhook",
        Command::OpenJobWithWebhook(_) => "OpenJobWithWebhook",
        Command::RecordHandover(_) => "RecordHandover",
        Command::ReportOriginal(_) => "ReportOriginal",
        Command::UpdateCard(_) => "UpdateCard",
        Command::IssueLimitedKey(_) => "IssueLimitedKey",
        Command::RevokeKey { .. } => "RevokeKey",
        Command::RecordKeyUse { .. } => "RecordKeyUse",
        Command::ReportResult(_) => "Report",
        Command::Respond { .. } => "Respond",
        Command::Approve { .. } => "Approve",
        Command::ReportStatus { .. } => "Stand",
        Command::ReportReputation { .. } => "Boast",
        Command::Decline { .. } => "Decline",
        Command::Pass { .. } => "Pass",
        Command::AbandonJob(_) => "Abandon",
        Command::Defer { .. } => "Defer",
        Command::DispatchQueue => "Dispatch",
        Command::HandOver { .. } => "HandOver",
        Command::MarkShown { .. } => "Show",
        Command::MarkPending { .. } => "MarkPending",
        Command::MarkUnreachable { .. } => "Unreachable",
        Command::Cancel { .. } => "Cancel",
        Command::Requeue { .. } => "Requeue",
        Command::UpdateProfile { .. } => "Introduce",
        Command::RecordOnly => "Nothing",
        Command::AddAliases { .. } => "Name",
        Command::SendMessage(_) => "Send",
        Command::Forward { .. } => "Forward",
        Command::Ack { .. } => "Ack",
        Command::AckUnread { .. } => "Read",
        Command::MarkPresented { .. } => "Present",
        Command::SetBlocked { .. } => "Block",
        Command::RetryDelivery { .. } => "PushAgain",
        Command::RecordDelivery { .. } => "PushDone",
        Command::SaveAnswer(_) => "Remember",
        Command::FireTimer(_) => "Tick",
    }
);

table!(
    /// What agents sign.
    SIGNED, signed(Command) {
        Command::RequestJob(_) => "signed Ask",
        Command::Offer { .. } => "signed Offer",
        Command::AcceptOffer(_) => "signed Accept",
        Command::ReportResult(_) => "signed Result",
        Command::AbandonJob(_) => "signed Fail",
        Command::Forward { .. } => "signed Write",
        Command::UpdateProfile { .. } => "signed Introduce",
        _ => "signed Nothing",
    }
);

table!(
    /// What is submitted to a market.
    POSTED, posted(Command) {
        Command::Register(_) => "posted Enrol",
        Command::OpenJob(_) => "posted Open",
        Command::ReportResult(_) => "posted Report",
        Command::Pass { .. } => "posted Decline",
        Command::Offer { .. } => "posted Offer",
        Command::AckUnread { .. } => "posted Read",
        Command::DispatchQueue => "posted Dispatch",
        _ => "posted Nothing",
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
        Refusal::AnsweredElsewhere => "AnsweredElsewhere",
        Refusal::TooManyReports { .. } => "TooManyReports",
        Refusal::OverLimit { .. } => "OverLimit",
        Refusal::LimitedKey => "LimitedKey",
        Refusal::TooManyKeys { .. } => "TooManyKeys",
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
