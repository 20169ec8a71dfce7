import type { ChannelIdentity } from "../event/channel.ts";
import type { HandshakeReply } from "../event/ingest.ts";
import { err, type Result } from "../lib/result.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { CompiledChannel } from "./compiled-channel.ts";

export interface AnswerHandshakeDeps {
  /**
   * Stores the secret with which a channel's deliveries will be signed. Returns true if the channel now has this secret. Returns false if
   * it already has another one, which is not replaced.
   */
  readonly captureSecret: (channel: ChannelIdentity, secret: string) => Promise<boolean>;
  /**
   * Calls a URL from a verified handshake. The channel's settings restrict which URLs are allowed.
   * @throws UnavailableError
   */
  readonly visit: (url: string, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export type AnswerHandshake = ReturnType<typeof createAnswerHandshake>;

/**
 * Creates a function that performs the actions of a handshake. It returns the reply, or an error that says why there is none. It throws an
 * `UnavailableError` if an action is not possible at the moment.
 */
export function createAnswerHandshake({ captureSecret, visit }: AnswerHandshakeDeps) {
  return async (
    { identity }: CompiledChannel,
    { captured, visit: address, reply }: MatchedHandshake,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<Result<HandshakeReply, string>> => {
    // Builds the reply before the actions, because it may fail and has no side effects. Without a reply, the secret must not be stored.
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
