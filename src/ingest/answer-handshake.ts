import type { ChannelIdentity } from "../event/channel.ts";
import type { HandshakeReply } from "../event/ingest.ts";
import { err, type Result } from "../lib/result.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { CompiledChannel } from "./compiled-channel.ts";

export interface AnswerHandshakeDeps {
  /**
   * Stores the secret that will sign the channel's deliveries. Returns true if the channel now has this secret, or false if it already has
   * another one, which is never replaced.
   */
  readonly captureSecret: (channel: ChannelIdentity, secret: string) => Promise<boolean>;
  /**
   * Requests a URL from a verified handshake. The channel's config restricts the allowed URLs.
   *
   * @throws UnavailableError
   */
  readonly visit: (url: string, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export type AnswerHandshake = ReturnType<typeof createAnswerHandshake>;

/**
 * Creates a function that performs a handshake and returns the reply, or an error that explains why there is none. The function throws
 * `UnavailableError` if a step is currently impossible.
 */
export function createAnswerHandshake({ captureSecret, visit }: AnswerHandshakeDeps) {
  return async (
    { identity }: CompiledChannel,
    { captured, visit: address, reply }: MatchedHandshake,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<Result<HandshakeReply, string>> => {
    // Build the reply first: it has no side effects but may fail, and then the secret must not be stored.
    const answer = reply();
    if (!answer.ok) return answer;
    if (captured?.ok === false) return captured;
    if (address?.ok === false) return address;
    if (captured !== undefined && !(await captureSecret(identity, captured.value))) {
      return err("the channel already has another secret");
    }
    if (address !== undefined) await visit(address.value, { signal });
    return answer;
  };
}
