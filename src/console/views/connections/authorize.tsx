import { useEffect, useState } from "preact/hooks";
import { api, type Schemas, send } from "../../api/client.ts";
import { ActionButton } from "../../kit/feedback/buttons.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { hasPermission } from "../../session/session.ts";

interface Props {
  readonly connection: Schemas["Connection"];
  readonly onSignedIn: () => void;
}

const LOOK_EVERY_MS = 2_000;

/** Button that opens the provider's sign-in page. Calls `onSignedIn` when the user has completed the sign-in. */
export function Authorize({ connection: { id, kind, config, state }, onSignedIn }: Props) {
  const [isAway, setAway] = useState(false);
  const signIn = async (): Promise<void> => {
    const { url } = await send<Schemas["ConnectionAuthorization"]>("GET", `/connections/${id}/authorize`);
    const parsed = new URL(url);
    if (!["https:", "http:"].includes(parsed.protocol))
      throw new Error("The issuer's address must start with http:// or https://.");
    open(parsed, "_blank", "noopener,noreferrer");
    setAway(true);
  };
  const waits = isAway && state !== "ok";
  // Poll the gateway for the result, because the provider's sign-in window cannot report to this page.
  useEffect(() => {
    if (!waits) return undefined;
    const aborting = new AbortController();
    const { signal } = aborting;
    const look = async (): Promise<void> => {
      const now = await api.get("/connections/{connectionId}", { path: { connectionId: id }, signal });
      if (signal.aborted || now.state !== "ok") return;
      aborting.abort();
      toast("Signed in at the provider.");
      onSignedIn();
    };
    // Ignore a failure, because the next poll follows soon.
    const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS);
    return () => {
      clearInterval(timer);
      aborting.abort();
    };
  }, [waits, id]);
  // With a provider, this grant is the default.
  const needsPerson = (config.grant ?? "authorizationCode") === "authorizationCode";
  if (kind !== "oauth2" || !needsPerson || !hasPermission("connections.write")) return null;
  return (
    <>
      <ActionButton look="primary" act={signIn}>
        Sign in at the provider
      </ActionButton>
      {waits && <span class="faint">Waiting for the other window…</span>}
    </>
  );
}
