export interface OutStream {
  readonly write: (text: string) => unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Input stream of a command. In raw mode, a terminal yields one key press at a time. */
export interface InStream extends AsyncIterable<Uint8Array | string> {
  readonly isTTY?: boolean | undefined;
  readonly setRawMode?: (raw: boolean) => unknown;
}

export interface Io {
  readonly stdout: OutStream;
  readonly stderr: OutStream;
  readonly stdin: InStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}
