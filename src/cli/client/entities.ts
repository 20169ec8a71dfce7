/** Types of API objects with only the fields that the CLI reads. `GET /v1/openapi.json` describes all fields. */

export interface App {
  readonly id: string;
  readonly uid: string;
  readonly title: string;
  readonly blueprintId: string | null;
  /** Id of the app's space. `null` for the system app, which belongs to no space. */
  readonly spaceId: string | null;
  readonly createdAt: string;
}

export interface Channel {
  readonly id: string;
  readonly uid: string;
  readonly kind: string;
  readonly state: string;
  readonly url: string | null;
  readonly title: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly type: string }[];
}

export interface Source {
  readonly state: string;
  readonly stateReason: string | null;
  readonly lastEventAt: string | null;
  readonly lastError: { readonly code: string; readonly message: string; readonly at: string } | null;
  readonly lagMs: number | null;
  readonly nextPollAt: string | null;
  readonly silent: boolean;
  readonly cursor: { readonly value: unknown; readonly version: number; readonly updatedAt: string | null };
}

export interface Subscription {
  readonly id: string;
  readonly eventUid: string;
  readonly state: string;
  readonly lag: number | null;
  readonly lagSeconds: number | null;
  readonly pending: number | null;
  readonly deadLetters: number | null;
  readonly handler: { readonly url: string } | null;
  readonly lastError: { readonly code: string; readonly message: string; readonly at: string } | null;
}

export interface QuarantineRecord {
  readonly id: string;
  readonly channelUid: string;
  readonly reason: string;
  readonly path: string | null;
  readonly detail: string;
  readonly count: number;
  readonly lastAt: string;
}

export interface Preset {
  readonly preset: string;
  readonly title: string;
  readonly description: string;
  readonly documentationUrl: string;
  readonly notes: readonly string[];
  readonly secret: { readonly label: string; readonly hint: string } | null;
  readonly verification: Readonly<Record<string, unknown>> & { readonly scheme: string };
  readonly typePath?: string;
  readonly idPath?: string;
}

export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string | null;
  readonly permissions: readonly string[];
  readonly expiresAt: string | null;
  readonly createdAt: string;
}

export interface ApiEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly time?: string;
  readonly data?: unknown;
  readonly topic: string;
  readonly entryId: string;
}

export interface Problem {
  readonly id: string;
  readonly kind: string;
  readonly state: "opened" | "acknowledged" | "resolved";
  readonly severity: "error" | "warning";
  readonly message: string;
  readonly suggestedAction: string;
  readonly app: { readonly uid: string } | null;
  readonly channel: { readonly uid: string } | null;
  readonly subscription: { readonly eventUid: string } | null;
  readonly connection: { readonly name: string } | null;
  readonly firstSeenAt: string;
}
