import type { ChannelIdentity } from "../event/channel.ts";
import type { HandshakeReply } from "../event/ingest.ts";
import type { RawRequest } from "../event/received.ts";
import { err, type Result } from "../lib/result.ts";
import type { MatchedHandshake } from "../verify/handshake/compile.ts";
import type { CompiledChannel } from "./compile-channel.ts";

export interface AnswerHandshakeDeps {
  /**
   * Stores the secret that the sender will use to sign deliveries. Returns false if the channel already has another secret, which is never
   * replaced.
   */
  readonly captureSecret: (channel: ChannelIdentity, secret: string) => Promise<boolean>;
  /**
   * Notes a handshake of a channel with a registration, because some providers confirm a registration by it.
   *
   * @throws UnavailableError
   */
  readonly confirmRegistration: (channel: ChannelIdentity, query: URLSearchParams) => Promise<void>;
  /**
   * Requests a URL from a verified handshake. The channel's config restricts which URLs are allowed.
   *
   * @throws UnavailableError
   */
  readonly visit: (url: string, options: { readonly signal: AbortSignal }) => Promise<void>;
}

export type AnswerHandshake = ReturnType<typeof createAnswerHandshake>;

/**
 * Creates a function that answers a sender's handshake. The function returns the reply, or an error that explains why there is no reply. It
 * throws `UnavailableError` if a step is temporarily impossible.
 */
export function createAnswerHandshake({ captureSecret, confirmRegistration, visit }: AnswerHandshakeDeps) {
  return async (
    { identity, config }: CompiledChannel,
    request: Pick<RawRequest, "target">,
    { captured, visit: address, reply }: MatchedHandshake,
    { signal }: { readonly signal: AbortSignal },
  ): Promise<Result<HandshakeReply, string>> => {
    // Builds the reply before the secret is stored, because building the reply may fail and has no side effects.
    const answer = reply();
    if (!answer.ok) return answer;
    if (captured?.ok === false) return captured;
    if (address?.ok === false) return address;
    if (captured !== undefined && !(await captureSecret(identity, captured.value))) {
      return err("the channel already has another secret");
    }
    if (address !== undefined) await visit(address.value, { signal });
    if ("registration" in config && config.registration !== undefined)
      await confirmRegistration(identity, new URL(request.target, "http://hook").searchParams);
    return answer;
  };
}
