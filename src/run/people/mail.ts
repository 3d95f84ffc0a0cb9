/** Where letters to the runs of a journal lie: in the journal, where it keeps them, else in files of the state folder. */
import type { Journal } from "../../engine/ports.ts";
import type { Mail } from "../../flow/mail.ts";
import { createFileMail } from "./mail-files.ts";

/** A folder: letters are files in it. */
export type MailPlace = Mail | string;

export function mailPlace(journal: Pick<Journal, "mail">, stateDir: string): MailPlace {
  return journal.mail ?? stateDir;
}

export function mailAt(place: MailPlace): Mail {
  return typeof place === "string" ? createFileMail(place) : place;
}

export function mailOf(journal: Pick<Journal, "mail">, stateDir: string): Mail {
  return mailAt(mailPlace(journal, stateDir));
}
