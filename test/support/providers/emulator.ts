/** Requests of a registration, as the engine names them. */
export type Step = "create" | "list" | "check" | "renew" | "update" | "remove";

/** A webhook that the provider stores. */
export interface Hook {
  readonly id: string;
  readonly address: string;
  /** Key with which the provider signs, or the token that it sends. */
  readonly secret?: string | undefined;
  /** `undefined` if the provider does not select events by type. */
  readonly events?: readonly string[] | undefined;
  readonly expiresAtMs?: number | undefined;
  /** Whether the provider still checks the address, and sends no deliveries. */
  readonly isPending?: boolean;
  /** Text that the provider returns unchanged in each delivery. */
  readonly channelToken?: string | undefined;
}

/** Replaces or delays the response to a request. */
export interface Fault {
  readonly status?: number;
  readonly body?: string;
  /** The body of the response repeats the request's body and credentials. */
  readonly echoes?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly delayMs?: number;
  /** The connection is cut before (`request`) or after (`response`) the provider has acted. */
  readonly lost?: "request" | "response";
}

export interface RecordedRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface DeliveryResult {
  readonly hook: Hook;
  /** Status of the response, or 0 if there was none. */
  readonly status: number;
}

/** A webhook provider on this machine. Its API has the paths, status codes and error bodies of the provider's documentation. */
export interface Emulator extends AsyncDisposable {
  readonly url: string;
  /** Bearer token that the emulator accepts. It rejects other tokens with 401. */
  readonly token: string;
  /** Bearer token without the permission to manage webhooks. */
  readonly limitedToken: string;
  readonly requests: readonly RecordedRequest[];
  /** Webhooks that have not expired by the clock. */
  hooks(): readonly Hook[];
  /** Adds a webhook that another program has created. */
  addForeign(address: string): Hook;
  /** Removes a webhook at the provider, as a person or repeated failures do. */
  drop(id: string): void;
  /** Applies the fault to the next requests of the step. */
  failNext(step: Step, fault: Fault, times?: number): void;
  /** Sets the maximum number of webhooks. The provider's own limit is the default. */
  setQuota(most: number): void;
  /**
   * Signs and sends a delivery with a new id to all webhooks that receive the event.
   *
   * @param payload the changed object, in the form of the provider's documentation
   * @param event the type of the event, by default the first type of each webhook
   */
  deliver(payload?: unknown, event?: string): Promise<readonly DeliveryResult[]>;
  /** Repeats the last delivery with its id. */
  redeliver(): Promise<readonly DeliveryResult[]>;
}

export interface EmulatorOptions {
  readonly clock: () => number;
  /** Secret of the app, for providers that sign all deliveries of an app with one secret. */
  readonly appSecret?: string;
}

export type StartEmulator = (options: EmulatorOptions) => Promise<Emulator>;
