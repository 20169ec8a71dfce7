import type { Outbound } from "../net/outbound.ts";
import type { FetchPinned } from "../verify/keys/key-cache.ts";

const LIMITS = { totalTimeoutMs: 5_000, maxBytes: 256 * 1024, maxRedirects: 0 } as const;

/** Keys, certificates and confirmations, from addresses that a channel's settings have named or pinned. */
export const createFetchPinned =
  (outbound: Pick<Outbound, "request">): FetchPinned =>
  async (url, { signal }) => {
    const { status, body } = await outbound.request(
      { method: "GET", url, headers: {} },
      { ...LIMITS, signal },
    );
    if (status !== 200) throw new Error(`the answer was HTTP ${status}`);
    return body;
  };
