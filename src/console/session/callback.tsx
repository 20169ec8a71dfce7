import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { ApiError } from "../api/api-error.ts";
import { useAction } from "../api/use-action.ts";
import { ErrorNote, Loading } from "../kit/feedback/states.tsx";
import { TextField } from "../kit/form/field.tsx";
import { Form } from "../kit/form/form.tsx";
import { Button } from "../kit/layout/button.tsx";
import type { SignInResult } from "./issuer.ts";
import { signIn } from "./session.ts";
import { consoleSettings } from "./settings.ts";

/** Page to which the issuer redirects after sign-in. It exchanges the code for a token and opens the URL that the user requested first. */
export function Callback() {
  const { route } = useLocation();
  const [result, setResult] = useState<SignInResult>();
  const [organizationId, setOrganizationId] = useState("");
  const [needsOrganization, setNeedsOrganization] = useState(false);

  const finish = useAction(async (by: SignInResult, named: string | undefined) => {
    try {
      await signIn(() => by.tokenFor(named));
    } catch (error) {
      // Ask the user for the organization, because the account belongs to several organizations and the token names none of them.
      if (
        named === undefined &&
        error instanceof ApiError &&
        error.details.some(({ path }) => path === "organizationId")
      ) {
        setNeedsOrganization(true);
        return;
      }
      throw error;
    }
    route(by.returnTo, true);
  });

  const begin = useAction(async () => {
    const { completeSignIn } = await import("./issuer.ts");
    const { signIn: settings } = await consoleSettings();
    if (settings === null)
      throw signInError("This gateway no longer has an OpenID Connect issuer for the console.");
    const found = await completeSignIn(settings).catch((error: unknown) => {
      throw error instanceof ApiError
        ? error
        : signInError(error instanceof Error ? error.message : String(error));
    });
    setResult(found);
    await finish.run(found, undefined);
  });
  useEffect(() => {
    document.title = "Sign in · Inlet";
    void begin.run();
  }, []);

  const failed = begin.error ?? finish.error;
  return (
    <main class="sign-in">
      <div class="sign-in-card">
        <h1>Sign in to Inlet</h1>
        {needsOrganization && result ? (
          <Form onSubmit={() => finish.run(result, organizationId.trim())}>
            <TextField
              label="Organization"
              help="The id of the organization to sign in to."
              required
              value={organizationId}
              placeholder="org_…"
              onChange={setOrganizationId}
            />
            <Button type="submit" look="primary wide" disabled={finish.isRunning}>
              Continue
            </Button>
          </Form>
        ) : (
          !failed && <Loading lines={3} />
        )}
        {failed && (
          <>
            <ErrorNote error={failed} />
            <p>
              <a href="/console/">Start again</a>
            </p>
          </>
        )}
      </div>
    </main>
  );
}

const signInError = (message: string): ApiError =>
  new ApiError(message, { status: 0, code: "sign_in_failed" });
