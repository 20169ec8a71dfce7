import type { SamplerName } from "./sampler.ts";

export interface TracingSettings {
  /** Base URL of the OTLP receiver, to which `/v1/traces` is appended. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly sampler: SamplerName;
  readonly ratio: number;
  readonly serviceName: string;
  readonly resourceAttributes: Readonly<Record<string, string>>;
  /** Maximum time for which spans wait for others before they are exported. */
  readonly scheduleDelayMs: number;
}

/** Called with the number of spans whose export has ended, or that were dropped because the queue was full. */
export type ExportedSpans = (result: "exported" | "failed" | "dropped", count: number) => void;
