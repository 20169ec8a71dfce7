import { setTimeout as delay } from "node:timers/promises";

/** Records of the senders: ids acknowledged with 200, and ids that are not acknowledged yet. */
export interface Ledger {
  readonly acknowledged: Set<string>;
  readonly unanswered: Set<string>;
  /** Responses other than 200 and those that a sender may retry (503, or no response). */
  readonly wrong: string[];
  attempts: number;
}

export interface Senders {
  readonly ledger: Ledger;
  /** Stops each sender after its current event was acknowledged. */
  readonly finish: () => Promise<void>;
}

/**
 * Starts senders. Each posts one event at a time and retries it with the same id until the response is 200. `hooks` returns the current
 * addresses of the gateways.
 */
export function startSenders(
  hooks: () => readonly string[],
  { count, random }: { readonly count: number; readonly random: () => number },
): Senders {
  const ledger: Ledger = { acknowledged: new Set(), unanswered: new Set(), wrong: [], attempts: 0 };
  let finishing = false;

  async function send(sender: number): Promise<void> {
    for (let i = 0; !finishing; i++) await deliver(`${sender}-${i}`);
  }

  async function deliver(id: string): Promise<void> {
    const body = JSON.stringify({ id, type: `t${id.length % 3}`, text: "x".repeat((id.length * 97) % 700) });
    ledger.unanswered.add(id);
    for (let attempt = 0; ; attempt++) {
      const urls = hooks();
      const url = urls[(Number.parseInt(id, 10) + attempt) % Math.max(1, urls.length)];
      const status = url === undefined ? undefined : await post(url, body);
      ledger.attempts++;
      if (status === 200) break;
      if (status !== undefined && status !== 503) ledger.wrong.push(`${id}: ${status}`);
      await delay(20 + random() * 80);
    }
    ledger.unanswered.delete(id);
    ledger.acknowledged.add(id);
  }

  const running = Array.from({ length: count }, (_, sender) => send(sender));
  return {
    ledger,
    finish: async () => {
      finishing = true;
      await Promise.all(running);
    },
  };
}

async function post(url: string, body: string): Promise<number | undefined> {
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
      signal: AbortSignal.timeout(10_000),
    });
    const text = await response.text();
    if (response.status !== 200) return response.status;
    const outcome = JSON.parse(text) as { readonly published: number; readonly duplicates: number };
    return outcome.published + outcome.duplicates === 1 ? 200 : -1;
  } catch {
    return undefined;
  }
}
