import type { ChannelIdentity } from "../event/channel.ts";
import type { HandshakeReply } from "../event/ingest.ts";
import { err, type Result } from "../lib/result.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { CompiledChannel } from "./compiled-channel.ts";

export interface AnswerHandshakeDeps {
  /**
   * Keeps the secret that a channel's deliveries will be signed with. True where it is the channel's from now on, or was kept
   * before; false where the channel has another one: that stays.
   */
  readonly captureSecret: (channel: ChannelIdentity, secret: string) => Promise<boolean>;
  /** Calls an address that a verified handshake names and its channel has pinned. @throws UnavailableError */
  readonly visit: (url: string, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export type AnswerHandshake = ReturnType<typeof createAnswerHandshake>;

/**
 * Does what a handshake asks for, then makes its answer; the error says why there is none. Throws UnavailableError where it cannot
 * be done now.
 */
export function createAnswerHandshake({ captureSecret, visit }: AnswerHandshakeDeps) {
  return async (
    { identity }: CompiledChannel,
    { captured, visit: address, reply }: MatchedHandshake,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<Result<HandshakeReply, string>> => {
    // First, since it touches nothing: a secret must not be kept of a sender who then gets no answer.
    const answer = reply();
    if (!answer.ok) return answer;
    if (captured?.ok === false) return captured;
    if (address?.ok === false) return address;
    if (captured !== undefined && !(await captureSecret(identity, captured.value))) {
      return err("the channel has another secret already");
    }
    if (address !== undefined) await visit(address.value, { signal });
    return answer;
  };
}
