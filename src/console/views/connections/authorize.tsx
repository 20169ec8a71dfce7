import { type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { ProblemNote } from "../../kit/feedback/states.tsx";
import { may } from "../../session/session.ts";

/** Sends a person to the other side, to allow this connection there. */
export function Authorize({
  connection: { id, kind, config },
}: {
  readonly connection: Schemas["Connection"];
}) {
  const action = useAction(async () => {
    const { url } = await send<Schemas["ConnectionAuthorization"]>("GET", `/connections/${id}/authorize`);
    const parsed = new URL(url);
    if (!["https:", "http:"].includes(parsed.protocol))
      throw new Error("The issuer's address is none of the web.");
    open(parsed, "_blank", "noopener,noreferrer");
  });
  if (kind !== "oauth2" || config.grant !== "authorizationCode" || !may("connections.write")) return null;
  return (
    <>
      <button
        type="button"
        class="button primary"
        disabled={action.isRunning}
        onClick={() => void action.run()}
      >
        Sign in at the other side
      </button>
      {action.problem && <ProblemNote problem={action.problem} />}
    </>
  );
}
