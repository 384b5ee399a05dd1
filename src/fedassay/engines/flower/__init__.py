"""The engine over Flower: a ServerApp and a ClientApp."""
