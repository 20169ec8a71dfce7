import type { ColumnType, Generated } from "kysely";
import type { Json, Timestamp, Timestamps } from "../columns.ts";

/**
 * State of a registration at a provider.
 *
 * - `creating`: Inlet is about to create it, or does not know yet whether the provider has stored it.
 * - `lapsed`: the provider no longer has it or no longer sends. Inlet creates it again.
 * - `failed`: the last request failed. Inlet retries with growing intervals.
 * - `removing`: it is no longer wanted, and the provider has not removed it yet.
 */
export const REGISTRATION_STATES = [
  "creating",
  "active",
  "renewing",
  "lapsed",
  "failed",
  "removing",
] as const;
export type RegistrationState = (typeof REGISTRATION_STATES)[number];

export interface RegistrationFailure {
  readonly code: string;
  readonly message: string;
  /** ISO 8601 time. */
  readonly at: string;
}

export interface RegistrationsTable extends Timestamps {
  id: string;
  organizationId: string;
  appId: string;
  channelUid: string;
  /** `null` after the channel was deleted. */
  channelNumber: number | null;
  replacedBy: string | null;
  /** `null` if the provider needs no credentials. */
  connectionId: string | null;
  preset: string;
  target: string;
  params: Json<Readonly<Record<string, unknown>>>;
  baseUrl: string | null;
  state: RegistrationState;
  providerId: string | null;
  /** Values of the provider's responses that later requests need. */
  kept: ColumnType<Readonly<Record<string, unknown>>, string | undefined, string>;
  sealedContents: string | null;
  attemptedAt: ColumnType<Date | null, Date | undefined, Date | null>;
  expiresAt: ColumnType<Date | null, Date | undefined, Date | null>;
  renewAt: ColumnType<Date | null, Date | undefined, Date | null>;
  /** Time of the provider's last handshake, for providers that confirm a registration by one. */
  confirmedAt: ColumnType<Date | null, Date | undefined, Date | null>;
  checkedAt: ColumnType<Date | null, Date | undefined, Date | null>;
  lapsedAt: ColumnType<Date | null, Date | undefined, Date | null>;
  wanted: Generated<number>;
  nextAt: Timestamp;
  failures: Generated<number>;
  lastError: ColumnType<RegistrationFailure | null, string | undefined, string | null>;
  leaseHolder: string | null;
  leaseExpiresAt: ColumnType<Date | null, Date | undefined, Date | null>;
}
