/** A stream that a command writes to. */
export interface OutStream {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** A stream that a command reads. A terminal in raw mode yields one key press at a time. */
export interface InStream extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean | undefined;
  readonly setRawMode?: (raw: boolean) => unknown;
}

/** Streams, environment and stop signal that a command uses. */
export interface Io {
  readonly stdout: OutStream;
  readonly stderr: OutStream;
  readonly stdin: InStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborts when the user stops the command. */
  readonly signal: AbortSignal;
}
