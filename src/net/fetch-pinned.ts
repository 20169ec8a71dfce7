import { nameBlocked } from "./name-blocked.ts";
import type { Outbound } from "./outbound.ts";

const PINNED_LIMITS = { totalTimeoutMs: 5_000, maxBytes: 256 * 1024, maxRedirects: 0 } as const;

/** Creates an HTTP client for URLs from channel settings, such as those of verification keys and subscription confirmations. */
export const createFetchPinned =
  (outbound: Pick<Outbound, "request">) =>
  async (url: string, { signal }: { readonly signal: AbortSignal }): Promise<Buffer> => {
    const { status, body } = await nameBlocked("a URL of the channel's `verification`", url, () =>
      outbound.request({ method: "GET", url, headers: {} }, { ...PINNED_LIMITS, signal }),
    );
    if (status !== 200) throw new Error(`the server responded with HTTP ${status} instead of 200`);
    return body;
  };
