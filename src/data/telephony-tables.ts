import type { Selectable } from "kysely";
import type { Timestamps } from "./columns.ts";

export interface SipTrunksTable extends Timestamps {
  id: string;
  organizationId: string;
  name: string;
  sipProvider: string;
  host: string | null;
  port: number | null;
  transport: "udp" | "tcp" | "tls";
}

export interface PhoneNumbersTable extends Timestamps {
  id: string;
  /** Who has registered it, be it assigned or not. */
  organizationId: string;
  assigned: boolean;
  trunkId: string;
  channelId: string | null;
  countryCode: string;
  e164: string;
  status: "pending_activation" | "active" | "suspended";
}

export type SipTrunkRow = Selectable<SipTrunksTable>;
export type PhoneNumberRow = Selectable<PhoneNumbersTable>;
