import { useEffect, useState } from "preact/hooks";
import { useAction } from "../api/use-action.ts";
import { ErrorNote } from "../kit/feedback/states.tsx";
import { TextField } from "../kit/form/field.tsx";
import { Form } from "../kit/form/form.tsx";
import { Button } from "../kit/layout/button.tsx";
import { Mark } from "../kit/layout/icons.tsx";
import type { IssuerSettings } from "./issuer.ts";
import { signInWithKey } from "./session.ts";
import { consoleSettings } from "./settings.ts";

/** Sign-in form. The URL does not change, so that the requested view opens after sign-in. */
export function SignIn({ why }: { readonly why?: string | undefined }) {
  const [key, setKey] = useState("");
  const [issuer, setIssuer] = useState<IssuerSettings>();
  const byKey = useAction(() => signInWithKey(key.trim()));
  const byIssuer = useAction(async (settings: IssuerSettings) => {
    const { redirectToIssuer } = await import("./issuer.ts");
    await redirectToIssuer(settings, location.pathname + location.search);
  });
  useEffect(() => {
    document.title = "Sign in · Inlet";
    // Ignore the failure, because users can sign in with an API key without the settings.
    consoleSettings().then(
      ({ signIn }) => setIssuer(signIn ?? undefined),
      () => {},
    );
  }, []);
  const error = byKey.error ?? byIssuer.error;
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <Mark />
        <h1>Sign in to Inlet</h1>
        {why !== undefined && (
          <div class="note info" role="status">
            You were signed out: {why}
          </div>
        )}
        {issuer && (
          <>
            <Button
              look="primary wide"
              disabled={byIssuer.isRunning}
              onClick={() => void byIssuer.run(issuer)}
            >
              Continue with {new URL(issuer.issuer).host}
            </Button>
            <p class="or">or</p>
          </>
        )}
        <Form onSubmit={byKey.run}>
          <TextField
            label="API key"
            help="The gateway prints a key at its first start. The browser stores only a token of fifteen minutes, never the key."
            type="password"
            name="key"
            required
            value={key}
            onChange={setKey}
          />
          {error && <ErrorNote error={error} />}
          <Button
            type="submit"
            look={issuer ? "wide" : "primary wide"}
            disabled={byKey.isRunning || key.trim() === ""}
          >
            {byKey.isRunning ? "Signing in …" : "Sign in"}
          </Button>
        </Form>
        <p class="faint">
          <a href="/docs">Guides and API reference</a>
        </p>
      </div>
    </main>
  );
}
