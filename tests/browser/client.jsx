// Shlink's web client as a page: its component with its own SDK, on the server that the page names.
import { createRoot } from "react-dom/client";
import { ShlinkApiClient } from "@shlinkio/shlink-js-sdk";
import { FetchHttpClient } from "@shlinkio/shlink-js-sdk/fetch";
import { ShlinkWebComponent } from "@shlinkio/shlink-web-component";

const { baseUrl, apiKey } = JSON.parse(document.querySelector("#server").textContent);
const apiClient = new ShlinkApiClient(new FetchHttpClient(), { baseUrl, apiKey });
const settings = { realTimeUpdates: { enabled: true }, visits: { defaultInterval: "all" } };

createRoot(document.querySelector("#page")).render(
  <ShlinkWebComponent serverVersion="5.0.0" apiClient={apiClient} settings={settings} routesPrefix="" />,
);
