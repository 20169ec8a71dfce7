import type { ChannelKindName } from "../../event/channel.ts";

/** A pull source that should run, as far as whoever keeps it going must know. */
export interface DesiredSource {
  readonly channelNumber: number;
  readonly kind: ChannelKindName;
  readonly organizationId: string;
  /** Changes with every write to the channel. */
  readonly version: number;
  /** The channel's `config` without its secret settings, defaults filled in by the kind's schema. */
  readonly settings: unknown;
}

/** Keeps scheduled sources going. Disposal ends the runs under way and leaves the schedules to the other workers. */
export interface SourceEngine extends AsyncDisposable {
  /**
   * All the sources that should run now, whichever worker runs them; each call replaces the list before. A source whose
   * version is the one of before is the same object. Called on every worker, so that what it does must bear being done twice.
   */
  readonly sync: (sources: readonly DesiredSource[]) => void;
  /** The source's cursor was set by hand, or its connection has changed: its next run should not wait for an old reason. */
  readonly requestPoll: (channelNumber: number) => void;
}
