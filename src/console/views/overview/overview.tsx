import { useAppId } from "../../kit/layout/apps.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { hasPermission } from "../../session/session.ts";
import { AppFigures } from "./app-figures.tsx";
import { GatewayFacts } from "./gateway-facts.tsx";
import { OpenProblems } from "./open-problems.tsx";
import { OrganizationFigures } from "./organization-figures.tsx";
import "./overview.css";

export default function Overview() {
  const appId = useAppId();
  return (
    <Page title="Overview">
      {hasPermission("problems.read") && <OpenProblems />}
      {hasPermission("overview.read") && <OrganizationFigures appId={appId} />}
      <GatewayFacts />
      {appId !== undefined && <AppFigures key={appId} appId={appId} />}
    </Page>
  );
}
