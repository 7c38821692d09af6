"""The sandbox device plugin, kubevirt-gpu-device-plugin: names of resources, discovery, registration, allocation."""
